"""The workflow of the forge runs what a developer runs, with no more rights than it needs."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def steps() -> list[dict[str, Any]]:
    jobs = [job for text in WORKFLOWS.values() for job in yaml.safe_load(text)["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


def test_actions_are_pinned() -> None:
    """By commit: a tag can be moved."""
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)


def test_caches_go_by_files_that_are_there() -> None:
    """A pattern that fits no file is no error to the forge: the key would stay the same for ever."""
    keys = [step["with"]["key"] for step in steps() if "key" in step.get("with", {})]
    patterns = {pattern for key in keys for pattern in re.findall(r"'([^']+)'", key)}
    assert patterns
    assert all(any(ROOT.glob(f"{p}/*" if p.endswith("**") else p)) for p in patterns)


def test_rights_are_the_least() -> None:
    """To read the sources, for every job; no secret is named and no login left behind."""
    for text in WORKFLOWS.values():
        document = yaml.safe_load(text)
        assert document["permissions"] == {"contents": "read"}
        assert not any("permissions" in job for job in document["jobs"].values())
        assert "secrets." not in text
        assert "pull_request_target" not in text
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_commands_are_those_of_the_makefile() -> None:
    """One command a job, which works on a developer's machine as well."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for step in steps() if "run" in step]
    assert set(commands) == {"make check", "make test", "make docs"}
    assert {command.removeprefix("make ") for command in commands} <= targets
