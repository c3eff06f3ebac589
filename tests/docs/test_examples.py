"""Everything that README and docs tell a reader to type works, in the order of the page."""

import os
from pathlib import Path

import pytest

from tests.docs import pages, servers
from tests.docs.pages import RUN, Page
from tests.docs.play import Play

PAGES = [pages.load(name) for name in pages.names()]
HERE = [page for page in PAGES if page.runs and "cluster" not in page.needs]
CLUSTER = [page for page in PAGES if page.runs and "cluster" in page.needs]
# Blocks that are shown and not run. Each stands here, so that a page that leaves one out is a change of this list.
NOT_RUN = {
    "README.md": 2,
    "docs/how-to/fork.md": 1,
    "docs/how-to/lineage.md": 2,
    "docs/how-to/postgres-changes.md": 3,
    "docs/how-to/traces.md": 1,
    "docs/how-to/watch.md": 2,
    "docs/how-to/why.md": 1,
    "docs/operating/alerts.md": 2,
    "docs/operating/kubernetes.md": 1,
    "docs/operating/scaling.md": 1,
    "docs/operating/upgrades.md": 1,
    "docs/tutorials/kafka.md": 1,
    "docs/tutorials/kubernetes.md": 2,
    "docs/tutorials/laptop.md": 1,
}


def played(page: Page, folder: Path, request: pytest.FixtureRequest) -> Play:
    """The page with the servers that it needs."""
    stage = folder / "page"
    stage.mkdir()
    play = Play(page, stage)
    if "kafka" in page.needs:
        broker = request.getfixturevalue("broker")
        play.addresses = {**play.addresses, **servers.kafka_addresses(broker)}
        play.environment = {**play.environment, **servers.kafka_tools(broker, folder / "bin")}
    if "registry" in page.needs:
        registry = request.getfixturevalue("registry")
        play.addresses = {**play.addresses, **servers.registry_addresses(registry)}
        play.environment = {**play.environment, **servers.REGISTRY_LOGIN}
    if "postgres" in page.needs:
        database = request.getfixturevalue("database")
        servers.login(database)
        play.addresses = {**play.addresses, **servers.postgres_addresses(database)}
    if any(block.text.startswith(">>>") for block in page.blocks):
        play.names = {"spark": request.getfixturevalue("spark"), "folder": stage}
    return play


def _shared(page: Page) -> object:
    """Pages with one server are for one process, where processes share pages (`make docs`)."""
    group = [pytest.mark.xdist_group(name) for name in sorted(page.needs)]
    return pytest.param(page, marks=group, id=page.name)


@pytest.mark.spark
@pytest.mark.parametrize("page", [_shared(page) for page in HERE])
def test_a_page_does_what_it_says(page: Page, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Its commands, specs, queries and programs, with real servers where it needs some."""
    played(page, tmp_path, request).run(*RUN)


@pytest.mark.parametrize("page", CLUSTER, ids=lambda page: page.name)
def test_specs_of_pages_for_a_cluster_are_valid(page: Page, tmp_path: Path) -> None:
    """Without a cluster: what is applied there can be planned here."""
    Play(page, tmp_path).run("yaml", "sql")


@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", CLUSTER, ids=lambda page: page.name)
def test_a_page_works_on_a_cluster(page: Page, tmp_path: Path) -> None:
    """Its commands too, by the kubectl and helm on the path."""
    Play(
        page, tmp_path, {"STREAMJOIN_IMAGE": os.environ.get("STREAMJOIN_IMAGE", "localhost/streamjoin:dev")}
    ).run(*RUN)


def test_no_block_is_passed_over() -> None:
    """Each is of a language that is run, or a picture; each server is one of those of the tests."""
    assert [problem for page in PAGES for problem in pages.problems(page)] == []


def test_what_is_not_run() -> None:
    """Each such block says why, and is counted here."""
    found = {
        page.name: [block.not_run for block in page.blocks if block.not_run is not None] for page in PAGES
    }
    assert {name: len(reasons) for name, reasons in found.items() if reasons} == NOT_RUN
    assert all(len(reason.split()) > 2 for reasons in found.values() for reason in reasons)
