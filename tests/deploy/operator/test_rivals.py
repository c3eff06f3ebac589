"""Who owns a checkpoint that two jobs name?"""

from typing import Any

import pytest
from joinop.names import Key
from joinop.rivals import rival

from tests.deploy.operator.things import AT, LATER, thing

HOST = [{"mountPath": "/data", "hostPath": "/srv"}]
RUNS = {"checkpoint": {"folder": "/data/checkpoint", "fingerprint": "{}"}}


def owner(mine: dict[str, Any], theirs: dict[str, Any]) -> Key | None:
    me, other = thing("mine", **mine), thing("theirs", **theirs)
    return rival(me, [me, other])


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

    assert owner({"created": LATER, **elsewhere}, {}) == Key("shop", "theirs")
