"""What a checkpoint stores: a plan that stores it too can go on from it, whatever its query reads.

Law: of groups whose rows others store, aggregates are told only if the checkpoint says what is selected of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Texts = tuple[str, ...]
StoredGroups = Mapping[Texts, tuple[Texts, ...]]  # by the keys of groups: their aggregates, fewest first


@dataclass(frozen=True)
class StoredColumns:
    """Columns, by their qualified names, and aggregates, by their texts; by default none."""

    inputs: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by the alias of the input
    # of rows that one join hands to another, by the aliases that are joined in them
    joined: Mapping[frozenset[str], frozenset[str]] = field(default_factory=dict)
    groups: StoredGroups = field(default_factory=dict)


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
    return StoredColumns(dict(inputs), dict(joined), _groups(stages))


def _groups(stages: Sequence[Mapping[str, Any]]) -> StoredGroups:
    found: defaultdict[Texts, set[Texts]] = defaultdict(set)
    read = upstreams(stages)
    for number, stage in enumerate(stages):
        if "groups" in stage and ("select" in stage or number not in read):
            found[tuple(stage["groups"]["by"])].add(tuple(stage["groups"]["of"]))
    return {keys: tuple(sorted(calls, key=lambda c: (len(c), c))) for keys, calls in found.items()}


def upstreams(stages: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Return the numbers of the stages whose rows others read."""
    names = {given["source"] for stage in stages for given in stage["inputs"]}
    return frozenset(n for n in range(len(stages)) if f"$stage{n}" in names)


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
