"""The ladder of examples, run for real by an installed chart: each does what its first lines say."""

import csv
import io
import tarfile
from collections.abc import Callable, Iterator

import pyarrow.parquet as pq
import pytest
import yaml

from tests.cluster.kube import Kube, Object
from tests.deploy.chart.conftest import IMAGE, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = ROOT / "manifests" / "examples"
SKEW = """
import re, urllib.request
text = urllib.request.urlopen('http://127.0.0.1:8080/metrics').read().decode()
found = dict(re.findall(r'^streamjoin_route_skew{route="(\\w+)"} (\\S+)', text, re.MULTILINE))
print(found.get('hash', 0), found.get('rule', 0))
"""
Apply = Callable[[str], str]


@pytest.fixture
def apply(space: Kube, release: str) -> Iterator[Apply]:
    """Applies an example and gives the name of its job; at the end all of it is gone."""
    del release
    applied: list[Object] = []

    def applying(name: str) -> str:
        text = (EXAMPLES / name).read_text().replace("docker.io/library/busybox:1.36", IMAGE)
        applied.extend(yaml.safe_load_all(text))
        space.apply(*applied)
        return next(d["metadata"]["name"] for d in applied if d["kind"] == "StreamJoin")

    yield applying
    for document in reversed(applied):
        space.delete(document["kind"], document["metadata"]["name"], "--timeout=120s")


def results(space: Kube, job: str, out: str) -> int:
    """Rows that a reader of the output folder finds. They are counted here: Arrow does not fit beside a JVM that starts."""
    command = "exec", f"{job}-driver-0", "--", "sh", "-c", f"cd {out} && tar cf - batch=*"
    with tarfile.open(fileobj=io.BytesIO(space.raw(*command))) as archive:
        files = [archive.extractfile(member) for member in archive if member.isfile()]
        return sum(pq.read_metadata(file).num_rows for file in files)


def test_first_join(space: Kube, apply: Apply) -> None:
    """Driver and two executors as pods, and rows on a claim."""
    job = apply("01-first-join.yaml")
    space.until("there are results", lambda: results(space, job, "/data/out"))
    executors = f"app.kubernetes.io/instance={job},app.kubernetes.io/component=executor"
    assert len(space.names("pods", executors)) == 2


def test_files_on_a_claim(space: Kube, apply: Apply) -> None:
    """The rows of two CSV files that a Job brings, joined."""
    job = apply("02-files-on-a-claim.yaml")
    space.until("there are results", lambda: results(space, job, "/data/out"))

    files = [
        space.exec(f"{job}-driver-0", "cat", f"/data/in/{name}/1.csv") for name in ("orders", "payments")
    ]
    orders, payments = (list(csv.DictReader(io.StringIO(text))) for text in files)
    paid = {row["order_id"] for row in payments}
    wanted = sum(o["order_id"] in paid and float(o["amount"]) > 10 for o in orders)
    space.until("all of them", lambda: results(space, job, "/data/out") == wanted)


def test_time_bound_outer(space: Kube, apply: Apply) -> None:
    """It runs and drops nothing but what nothing can match; unmatched orders need minutes to come out."""
    job = apply("03-time-bound-outer.yaml")

    space.until("there are results", lambda: results(space, job, "/data/out"))


def test_suspended(space: Kube, apply: Apply) -> None:
    """All objects but no pods."""
    job = apply("04-suspended.yaml")

    space.until("it rests", lambda: space.get("sj", job)["status"]["phase"] == "Suspended")
    assert space.get("statefulset", f"{job}-driver")["spec"]["replicas"] == 0
    assert space.names("pods", f"app.kubernetes.io/instance={job}") == []


def test_hot_keys_of_a_table(space: Kube, apply: Apply) -> None:
    """A rule for hot keys is made, and DS falls to less than half of what hashes would give."""
    job = apply("08-hot-keys-of-a-table.yaml")

    def even() -> bool:
        by_hash, by_rule = map(float, space.exec(f"{job}-driver-0", "python3", "-c", SKEW).split())
        return by_hash > 2 * by_rule

    space.until("DS has fallen", even)
