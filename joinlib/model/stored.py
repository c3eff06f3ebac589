"""What a checkpoint stores: a plan that stores it too can go on from it, whatever its query reads.

Law: of groups whose rows others store, aggregates are told only if the checkpoint says what is selected of them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Texts = tuple[str, ...]


@dataclass(frozen=True, order=True)
class StoredCalls:
    """The aggregates of stored groups."""

    count: int
    of: Texts
    changes: bool  # whether rows of the groups may be deleted, so that other partials are kept


StoredGroups = Mapping[
    Texts, tuple[StoredCalls, ...]
]  # by the keys of groups: their aggregates, fewest first


@dataclass(frozen=True)
class StoredColumns:
    """Columns, by their qualified names, and aggregates, by their texts; by default none."""

    inputs: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by the alias of the input
    # of rows that one join hands to another, by the aliases that are joined in them
    joined: Mapping[frozenset[str], frozenset[str]] = field(default_factory=dict)
    groups: StoredGroups = field(default_factory=dict)
    # The texts of the conditions by which rows are stored; others are decided after the last join. None: every condition
    # is decided where that costs least.
    conditions: frozenset[str] | None = None
    keys: frozenset[frozenset[str]] = frozenset()  # the texts of values by whose equality rows are found
    relations: frozenset[str] = frozenset()  # the texts of what joins without such values ask


def stored_columns(plan: Mapping[str, Any]) -> StoredColumns:
    """Return what a plan stores, by its fingerprint (`model.fingerprint`)."""
    stages = plan.get("stages", [plan])
    inputs: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    joined: defaultdict[frozenset[str], frozenset[str]] = defaultdict(frozenset)
    for given in _inputs(stages):
        inputs[given["alias"]] |= frozenset(given["columns"])
    for stage in stages:
        for leaves, columns in zip(_handed(stage.get("tree")), stage.get("joined", ()), strict=False):
            joined[frozenset(stage["inputs"][leaf]["alias"] for leaf in leaves)] |= frozenset(columns)
    keys = frozenset(values for stage in stages for values in _equal(stage))
    relations = frozenset(
        text
        for stage in stages
        if not any(given["keys"] for given in stage["inputs"])
        for text in _conditions(stage.get("tree"))
    )
    return StoredColumns(dict(inputs), dict(joined), _groups(stages), keys=keys, relations=relations)


def _inputs(stages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (given for stage in stages for given in stage["inputs"])


def _equal(stage: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    """Yield the values that are equal where a stage's rows match, by class: keys are in the order of classes."""
    values = {name: value[0] for given in _inputs([stage]) for name, value in given["columns"].items()}
    by_paths = bool(stage.get("paths"))
    keys = stage["tree"]["keys"] if by_paths else [given["keys"] for given in stage["inputs"]]
    every = [range(len(keys))] * max(map(len, keys), default=0)
    left = [*map(iter, keys)]
    for members in stage["paths"]["classes"] if by_paths else every:
        names = (next(left[member], None) for member in members)  # an input may be copied to every unit
        yield frozenset(values[name] for name in names if name is not None)


def _groups(stages: Sequence[Mapping[str, Any]]) -> StoredGroups:
    found: defaultdict[Texts, set[StoredCalls]] = defaultdict(set)
    read = read_stages(stages)
    for number, stage in enumerate(stages):
        if "groups" in stage and ("select" in stage or number not in read):
            calls, changes = tuple(stage["groups"]["of"]), stage["groups"].get("changes", False)
            found[tuple(stage["groups"]["by"])].add(StoredCalls(len(calls), calls, changes))
    return {keys: tuple(sorted(calls)) for keys, calls in found.items()}


def stored_conditions(plan: Mapping[str, Any], last: bool = False) -> frozenset[str]:
    """Return the conditions by which rows are stored, by a plan's fingerprint: of inputs, joins and tables.

    last: Whether those by which the last join lets rows out are among them, as some of them may decide its kind.
    """
    stages = plan.get("stages", [plan])
    read = read_stages(stages)
    return frozenset(
        text
        for number, stage in enumerate(stages)
        for part in (*stage["inputs"], fixed(stage.get("tree"), last or number in read), stage.get("tables"))
        for text in _conditions(part)
    )


_CONDITIONS = ("filter", "predicate", "where")
_AND = " AND "
_ESCAPED = re.compile(r"\\.", re.DOTALL)  # in a text between quotes


def _conditions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name in _CONDITIONS:
            yield from conjuncts(part.get(name))
        part = (part.get("inputs"), part.get("maps"))
    if isinstance(part, list | tuple):
        for one in part:
            yield from _conditions(one)


def conjuncts(text: str | None) -> Iterator[str]:
    """Yield the texts x, y and z of `(x AND y AND z)`, and of those in turn; a text of another form as it is."""
    if text is None:
        return
    depth, quoted, found = 0, False, list[int]()
    for at, letter in enumerate(_ESCAPED.sub("__", text)):
        quoted ^= letter == "'"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            found.clear()
            break
        if depth == 1 and not quoted and text.startswith(_AND, at):
            found.append(at)
    if not found:
        yield text
        return
    for before, end in pairwise([1 - len(_AND), *found, len(text) - 1]):
        yield from conjuncts(text[before + len(_AND) : end])


def conjunction(texts: Sequence[str]) -> str:
    """Return the text of which these are the conjuncts."""
    return f"({_AND.join(texts)})" if len(texts) > 1 else texts[0]


def read_stages(stages: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Return the numbers of the stages whose rows others store; of joins by paths also where their rows come in."""
    read, stored = [False] * len(stages), set[str]()
    for number in reversed(range(len(stages))):
        read[number] = f"$stage{number}" in stored
        if read[number] or not passes_on(stages[number]):
            stored |= {given["source"] for given in stages[number]["inputs"]}
    for number in reversed(range(len(stages) - 1)):
        read[number] |= stages[number + 1].get("paths") == {} and read[number + 1]
    return frozenset(number for number, one in enumerate(read) if one)


def passes_on(stage: Mapping[str, Any]) -> bool:
    """Return whether a stage stores nothing: its rows come out as they come in, or not at all."""
    return isinstance(stage.get("tree"), int) and not stage.keys() & {"groups", "over", "paths"}


def fixed(tree: Any, read: bool) -> Any:
    """Return joins without the conditions that may change: nobody stores which rows the last join lets out.

    Of an inner join these are all conditions on rows that match; what others store of matches they do depend on.
    """
    if read or not isinstance(tree, dict) or tree["kind"] == "upsert":
        return tree
    inner = tree["kind"] == "inner"
    return {**tree, "where": None, "predicate": None if inner else tree["predicate"]}


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
