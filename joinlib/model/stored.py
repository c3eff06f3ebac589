"""The columns that a checkpoint stores: a plan that stores them too can go on from it, whatever its query reads."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StoredColumns:
    """Columns, by their qualified names; by default none."""

    inputs: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by the alias of the input
    # of rows that one join hands to another, by the aliases that are joined in them
    joined: Mapping[frozenset[str], frozenset[str]] = field(default_factory=dict)


def stored_columns(plan: Mapping[str, Any]) -> StoredColumns:
    """Return what a plan stores, by its fingerprint (`model.fingerprint`)."""
    stages = plan.get("stages", [plan])
    inputs: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    joined: defaultdict[frozenset[str], frozenset[str]] = defaultdict(frozenset)
    for stage in stages:
        for given in stage["inputs"]:
            inputs[given["alias"]] |= frozenset(given["columns"])
        for leaves, columns in zip(_handed(stage.get("tree")), stage.get("joined", ()), strict=False):
            joined[frozenset(stage["inputs"][leaf]["alias"] for leaf in leaves)] |= frozenset(columns)
    return StoredColumns(dict(inputs), dict(joined))


def _handed(tree: Any) -> Iterator[list[int]]:
    """Yield the inputs whose rows come joined to a join, for each such child, in the order of a fingerprint's `joined`."""
    if isinstance(tree, dict):
        for child in tree["inputs"]:
            yield from _handed(child)
        yield from (list(_leaves(child)) for child in tree["inputs"] if isinstance(child, dict))


def _leaves(tree: Any) -> Iterator[int]:
    if isinstance(tree, dict):
        for child in tree["inputs"]:
            yield from _leaves(child)
    else:
        yield tree
