"""Who owns a checkpoint that two jobs name?

And: it is found as a walk over all jobs would find it, without the walk.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joinop import volumes
from joinop.admission import Admitted, document, validate
from joinop.names import JobKey, Object, key
from joinop.ownership import CheckpointOwners
from joinop.volumes import VolumePath

from tests.deploy.operator.objects import AT, LATER, stream_join

HOST = [{"mountPath": "/data", "hostPath": "/srv"}]
RUNS = {"checkpoint": {"folder": "/data/checkpoint", "fingerprint": "{}"}}


def owner(mine: dict[str, Any], theirs: dict[str, Any]) -> JobKey | None:
    me, other = stream_join("mine", **mine), stream_join("theirs", **theirs)
    found = walk([me, other])[key(me)]
    assert found == indexed([me, other]).owner_of(key(me))
    return found


def indexed(things: Iterable[Object]) -> CheckpointOwners:
    found = CheckpointOwners()
    for each in things:
        found.put(each)
    return found


def walk(things: Iterable[Object]) -> dict[JobKey, JobKey | None]:
    """The oracle: compare each job with all others."""
    known = [(place_of(each), order(each)) for each in things]
    return {
        mine[-1]: min(
            (
                theirs
                for other, theirs in known
                if place and other and theirs < mine and other.overlaps(place)
            ),
            default=(mine, None),
        )[-1]
        for place, mine in known
    }


def place_of(each: Object) -> VolumePath | None:
    verdict = validate(document(each))
    if not isinstance(verdict, Admitted):
        return None
    return volumes.checkpoint(verdict.model.spec, each["metadata"]["namespace"])


def order(each: Object) -> tuple[bool, str, JobKey]:
    verdict, used = validate(document(each)), each.get("status", {}).get("checkpoint", {}).get("folder")
    has_run_there = isinstance(verdict, Admitted) and used == verdict.folder
    return not has_run_there, each["metadata"].get("creationTimestamp", ""), key(each)


@pytest.mark.parametrize(
    ("mine", "theirs", "taken"),
    [
        ({"created": LATER}, {"created": AT}, True),
        ({"created": AT}, {"created": LATER}, False),
        ({}, {}, False),  # same time: "mine" is the first by name
        ({"created": AT}, {"created": LATER, "status": RUNS}, True),  # it has run there
        ({"created": LATER, "checkpoint__path": "/data/else"}, {}, False),
        ({"created": LATER, "checkpoint__path": "/data/checkpoint/inner"}, {}, True),
        ({"created": LATER, "checkpoint__reset": "2"}, {}, False),
        ({"created": LATER, "namespace": "other"}, {}, False),  # another namespace's claim
        (
            {"created": LATER, "namespace": "other", "volumes": HOST},
            {"volumes": HOST},
            True,
        ),  # the node's folder
        ({"created": LATER, "volumes": HOST}, {}, False),
        ({"created": LATER}, {"sql": "SELECT 1"}, False),  # it cannot run anyway
    ],
)
def test_owner(mine: dict[str, Any], theirs: dict[str, Any], taken: bool) -> None:
    """Who has run there, then who is older, then the first by name; one place has many names."""
    assert (owner(mine, theirs) is not None) == taken


def test_other_mount_path() -> None:
    """A claim that is mounted elsewhere is the same claim."""
    elsewhere = {
        "volumes": [{"mountPath": "/data", "claim": "inputs"}, {"mountPath": "/state", "claim": "shared"}],
        "checkpoint__path": "/state/checkpoint",
    }

    assert owner({"created": LATER, **elsewhere}, {}) == JobKey("shop", "theirs")


FOLDERS = ["/data/a", "/data/a/b", "/data/a/b/c", "/data/ab", "/data"]
VOLUMES = [
    [{"mountPath": "/data", "claim": "one"}],
    [{"mountPath": "/data", "claim": "two"}],
    [{"mountPath": "/data", "claim": "one"}, {"mountPath": "/data/a", "claim": "two"}],
    [{"mountPath": "/data", "hostPath": "/srv"}],
    [{"mountPath": "/data", "hostPath": "/srv/a"}],
    [{"mountPath": "/elsewhere", "claim": "one"}],  # the checkpoint is under no volume: refused
]
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from("pqrs"),
            st.sampled_from(["shop", "other"]),
            st.sampled_from(FOLDERS),
            st.sampled_from([None, "2"]),
            st.sampled_from(VOLUMES),
            st.sampled_from([AT, LATER]),
            st.sampled_from([None, *FOLDERS]),  # where it has run
        ),
        st.tuples(st.just("gone"), st.integers(0, 7)),
    ),
    max_size=16,
)


def drawn(step: tuple[Any, ...], generation: int) -> Object:
    name, namespace, folder, reset, volumes, created, ran = step
    status = {"checkpoint": {"folder": ran}} if ran else None
    found = stream_join(
        name,
        namespace,
        created,
        status,
        checkpoint={"path": folder} | ({"reset": reset} if reset else {}),
        volumes=volumes,
        inputs__orders__files__path="/data/in",
    )
    return found | {"metadata": found["metadata"] | {"generation": generation}}


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_as_a_walk_over_all(steps: list[tuple[Any, ...]]) -> None:
    """Jobs come, change, run and go: after each step, every job has the owner that a walk over all of them
    finds.
    """
    checkpoint_owners, there = CheckpointOwners(), dict[JobKey, Object]()
    for number, step in enumerate(steps):
        if step[0] == "gone":
            for each in sorted(there)[step[1] : step[1] + 1]:
                checkpoint_owners.drop(each)
                del there[each]
        else:
            each = drawn(step, number // 3)  # a status changes without a new generation
            checkpoint_owners.put(each)
            there[key(each)] = each
        assert {each: checkpoint_owners.owner_of(each) for each in there} == walk(there.values())
    for each in there:
        checkpoint_owners.drop(each)
    assert checkpoint_owners == CheckpointOwners(), "nothing is left of those that are gone"


def test_only_new_specs_are_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand jobs that are known, a question judges none; one that has changed is judged alone; a
    status judges nothing.
    """
    things = [stream_join(f"job-{n}", checkpoint__path=f"/data/ck/{n}") for n in range(1000)]
    validated: list[str] = []
    verdict = validate(document(things[0]))

    def counted(given: Object) -> object:
        validated.append(given["metadata"]["name"])
        return verdict

    monkeypatch.setattr("joinop.ownership.verdict_of", counted)
    checkpoint_owners = indexed(things)
    assert checkpoint_owners.owner_of(key(things[7])) is not None, (
        "all have the one verdict, so the first owns it"
    )
    assert len(validated) == 1000

    validated.clear()
    for each in things[:30]:
        checkpoint_owners.put({**each, "status": {"phase": "Running"}})
        checkpoint_owners.owner_of(key(each))
    assert validated == []
    changed = things[5]["metadata"] | {"generation": 2}
    checkpoint_owners.put({**things[5], "metadata": changed})
    checkpoint_owners.owner_of(key(things[9]))
    assert validated == ["job-5"]
