"""The fingerprint of a plan: what must stay the same for a checkpoint to be usable.

Law: with equal fingerprints, stored state has the same meaning.

The select list of a result is not part of it, but the stored columns that it reads are; nor is HAVING of groups that
come out once, when they are final. Of a stage that others read both are. Delays are not, since they only affect later
batches. The number of units is, but where the state can be divided anew it is no difference. Tables are part of it
only where rows joined with them are grouped: lookups come last, and otherwise nothing after them is stored.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.expr.types import name
from joinlib.formats import PLAN
from joinlib.model.bounds import describe
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH, InputPlan
from joinlib.model.joins import Join, Leaf, Lookup
from joinlib.model.maps import Map
from joinlib.model.over import Over
from joinlib.model.stage import (
    AnyStage,
    GroupStage,
    HopStage,
    OverStage,
    PathStage,
    Pipeline,
    Stage,
    selected,
)
from joinlib.model.stored import conjunction, conjuncts, fixed, passes_on, read_stages

_NEW = "this needs a new checkpoint"
_OF_GROUPS = re.compile(r"\$[gx]\d+")  # columns of joined rows of which the texts of keys and aggregates tell


def fingerprint(plan: AnyStage | Pipeline) -> dict[str, Any]:
    """Return a plan's fingerprint as plain values, fit for JSON.

    A stage has the same fingerprint alone and as the only stage of a pipeline.
    """
    if not isinstance(plan, Pipeline):
        return _any(plan)
    if len(plan.stateful) == 1:
        return _any(plan.stateful[0]) | _results(plan)
    last = {min(result.stage, len(plan.stateful) - 1) for result in plan.results}
    return {
        "version": PLAN.writes,
        "units": plan.units,
        "stages": [
            _any(stage) | ({} if n in last else _read(stage)) for n, stage in enumerate(plan.stateful)
        ],
        **_results(plan),
    }


def as_json(plan: Pipeline) -> dict[str, Any]:
    """Return the fingerprint as it is read again from JSON."""
    return dict(orjson.loads(orjson.dumps(fingerprint(plan))))


def _results(plan: Pipeline) -> dict[str, Any]:
    """Return which stages make the results of several outputs."""
    return {"results": {result.name: result.stage for result in plan.named}} if plan.named else {}


def _any(stage: AnyStage) -> dict[str, Any]:
    if isinstance(stage, Stage):
        return _stage(stage)
    return {
        "version": PLAN.writes,
        "units": stage.units,
        # A later leg of a path join stores nothing, and may take other ways: it is there, that is all.
        "inputs": [] if isinstance(stage, HopStage) else [_input(i) for i in stage.inputs],
        **_own(stage),
    }


def _own(stage: GroupStage | OverStage | PathStage | HopStage) -> dict[str, Any]:
    """Return the fields that only stages of this kind have."""
    match stage:
        case GroupStage():
            return {"groups": _groups(stage.grouping)}
        case OverStage():
            return {"over": _over(stage.over)}
        case PathStage():
            return {"tree": _tree(stage.tree), "paths": _paths(stage)}
        case HopStage():
            return {"paths": {}}


def _paths(stage: PathStage) -> dict[str, Any]:
    """Return how rows are stored; by which routes they are found may change."""
    return {
        "classes": [sorted(members) for members in stage.graph.classes],
        "arrangements": [[a.input, list(a.key)] for a in stage.arrangements],
        "homes": list(stage.homes),
    }


def _read(stage: AnyStage) -> dict[str, Any]:
    """Return what later stages have stored of a stage's rows: tables and the select list of a result may change."""
    computed = ((name, value) for name, value in selected(stage) if value.column != name)
    select = {name: value.sql for name, value in computed if not _OF_GROUPS.fullmatch(name)}
    tables = [_lookup(asked) for asked in stage.lookups]
    return {**({"tables": tables} if tables else {}), **({"select": select} if select else {})}


def _over(over: Over) -> dict[str, Any]:
    return {
        "columns": [[n, name(kind)] for n, kind in over.columns],
        "partition": list(over.partition),
        "of": [c.sql for c in over.calls],
        "mode": "changelog" if over.changelog else "append",
        "qualify": _sql(over.qualify),
        **({"present": list(over.present)} if over.present is not None else {}),
    }


def _lookup(lookup: Lookup) -> dict[str, Any]:
    """Return what decides which rows match which rows of the table.

    How the table is cached and searched may change, so that is left out.
    """
    values = {c.name: c.value for c in lookup.table.columns}
    pairs = zip(lookup.probe, lookup.table.keys, strict=True)
    return {
        "kind": lookup.kind,
        "alias": lookup.table.alias,
        "source": lookup.table.source,
        "filter": _sql(lookup.table.filter),
        "keys": [[probe.sql, values[key].sql] for probe, key in pairs],
        "predicate": _sql(lookup.predicate),
        "where": _sql(lookup.where),
    }


def _groups(grouping: Grouping) -> dict[str, Any]:
    """Return what decides the contents of partials, and the rows emitted so far."""
    weighed = {"changes": True} if grouping.changes else {}  # other columns of partials, and more bags
    return {
        "by": [k.sql for k in grouping.keys],
        "of": [c.sql for c in grouping.calls],
        "mode": "changelog" if grouping.changelog else "append",
        "having": _sql(grouping.having),
        **weighed,
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "version": PLAN.writes,
        "units": stage.units,
        "inputs": [_input(i) for i in stage.inputs],
        "tree": _tree(stage.tree),
        "route": _route(stage),
        **({"eager": True} if any(operator.eager for operator in stage.operators) else {}),
        **({"joined": joined} if (joined := _joined(stage)) else {}),
    }


def _joined(stage: Stage) -> list[list[str]]:
    """Return which columns are stored of the rows that joins hand to other joins."""
    return [
        [name for name in side.schema.names if name != HASH]
        for operator in stage.operators
        for child, side in zip(operator.children, operator.sides, strict=True)
        if not isinstance(child, Leaf)
    ]


def _route(stage: Stage) -> list[list[Any]] | None:
    """Return which units store which input; the index is left out because it can be rebuilt."""
    if stage.route is None:
        return None
    groups = [[g.first, g.units, g.subgroups] for g in stage.route.groups]
    cells = stage.route.cells
    return [*groups, *([[*(v.sql for v in cells.values), cells.width]] if cells else [])]


def scattered(known: Any) -> bool:
    """Return whether a stage of a fingerprint has its rows at random, neither by a key nor in cells of a band."""
    stages = known.get("stages", [known])
    joined = [stage for stage in stages if stage.get("route") is not None]
    return any(not stage["route"][2:] and not any(i["keys"] for i in stage["inputs"]) for stage in joined)


def stores_once(known: Any) -> bool:
    """Return whether a stage of a fingerprint stores the stream of a self-join once."""
    return any("twin" in given for stage in known.get("stages", [known]) for given in stage["inputs"])


def _input(plan: InputPlan) -> dict[str, Any]:
    return {
        "alias": plan.alias,
        "source": plan.source,
        "columns": {c.name: [c.value.sql, name(c.value.type), str(c.value.type)] for c in plan.columns},
        "keys": list(plan.keys),
        "filter": _sql(plan.filter),
        "time": plan.time,
        "null_keys": plan.keep_null_keys,
        **({"changes": True} if plan.changes else {}),
        **({"maps": [_map(step) for step in plan.maps]} if plan.maps else {}),
        **({"twin": plan.twin} if plan.twin is not None else {}),
    }


def _map(step: Map) -> dict[str, Any]:
    return {
        "filter": _sql(step.filter),
        "expands": [[e.value.sql, list(e.columns), e.outer] for e in step.expands],
        "columns": {n: value.sql for n, value in step.columns},
    }


def _tree(tree: Join | Leaf) -> Any:
    if isinstance(tree, Leaf):
        return tree.input
    return {
        "kind": tree.kind,
        "inputs": [_tree(i) for i in tree.inputs],
        "keys": [list(k) for k in tree.keys],
        "bounds": sorted([b.left, b.right, b.low_us, b.high_us] for b in map(_ordered, tree.bounds)),
        "predicate": _sql(tree.predicate),
        "where": _sql(tree.where),
    }


def _ordered(bound: Bound) -> Bound:
    return bound if bound.left <= bound.right else bound.turned


def _sql(value: Expr | None) -> str | None:
    return None if value is None else value.sql


def in_units(known: dict[str, Any], units: int) -> dict[str, Any]:
    """Return the fingerprint of the same state in another number of units."""
    stages = {"stages": [in_units(stage, units) for stage in known["stages"]]} if "stages" in known else {}
    return {**known, "units": units, **stages}


def divisible(known: dict[str, Any]) -> bool:
    """Return whether the state of a fingerprint can be divided among more or fewer units (`checkpoint.units`)."""
    return all(map(_by_hash, known.get("stages", [known])))


_OWN = "groups", "over", "paths", "tables", "select", "results"  # fields that some stages have


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return why a checkpoint of `old` cannot serve `new`, a sentence for each reason; [] if it can."""
    return list(_differences(_in_any_order(old), _in_any_order(new)))


_CONDITIONS = ("filter", "predicate", "where", "having", "qualify")


def _in_any_order(part: Any) -> Any:
    """Return a fingerprint whose conditions are in the order of their texts: what passes all is the same in every order."""
    if isinstance(part, list):
        return [_in_any_order(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        name: conjunction(sorted(conjuncts(one)))
        if name in _CONDITIONS and isinstance(one, str)
        else _in_any_order(one)
        for name, one in part.items()
    }


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if why := PLAN.refused(old.get("version"), "the checkpoint"):  # other fields may be missing
        yield why
        return
    if "stages" in old and "groups" in old:
        yield f"an earlier version kept the groups beside the stages; {_NEW}"
        return
    if "stages" in old:
        yield from _strange(old, ("version", "units", "stages", "results"))
    if old.get("results", {}).keys() != new.get("results", {}).keys():
        before, after = (", ".join(plan.get("results", {})) or "one without a name" for plan in (old, new))
        yield f"the outputs were {before} and are {after}: one state is that of all of them; {_NEW}"
        return
    stages = [plan.get("stages", [plan]) for plan in (old, new)]
    if len(stages[0]) != len(stages[1]):
        was, now = map(len, stages)
        yield f"the query ran in {was} stage{'s'[: was != 1]} and would run in {now}; {_NEW}"
        return
    if "stages" in new:
        read = read_stages(stages[1])
        for number, pair in enumerate(zip(*stages, strict=True)):
            yield from (f"stage {number}: {why}" for why in _stage_differences(*pair, read=number in read))
        if old.get("results") != new.get("results"):
            yield f"the outputs are made by other stages; {_NEW}"
        return
    yield from _stage_differences(old, new, read=False)


def _strange(old: dict[str, Any], known: Iterable[str]) -> Iterator[str]:
    """Yield a reason if a later planner has fixed something that this one would silently ignore."""
    if why := PLAN.strange(old, known, "the checkpoint"):
        yield why


def _stage_differences(old: dict[str, Any], new: dict[str, Any], *, read: bool) -> Iterator[str]:
    """Yield why a stage cannot go on. read: by others, which store what comes out of it."""
    yield from _strange(old, {*new, *_OWN, "tree", "route", "eager", "joined"})
    if _settled(old.get("groups"), read) != _settled(new.get("groups"), read):
        yield f"the groups, their aggregates, HAVING or output.mode were different; {_NEW}"
        return
    if old.get("over") != new.get("over"):
        yield f"the window functions (OVER) or output.mode were different; {_NEW}"
        return
    if old.get("paths") != new.get("paths"):
        yield (
            "the joins were other stages or paths, or rows were stored by other keys (join.strategy); set it back,"
            " or start a new checkpoint"
        )
        return
    if read and old.get("tables") != new.get("tables"):
        yield f"its rows were joined with other tables, or in another way; {_NEW}"
        return
    if read:
        yield from _select_differences(old.get("select", {}), new.get("select", {}))
    yield from _stored_differences(old, new, read)


def _stored_differences(old: dict[str, Any], new: dict[str, Any], read: bool) -> Iterator[str]:
    """Yield why what a stage has stored of its inputs cannot serve."""
    if old.get("eager") != new.get("eager"):
        yield f"whether outer joins wait for partners was different (output.mode); {_NEW}"
    if old["units"] != new["units"] and not (_by_hash(old) and _by_hash(new)):
        yield f"join.units was {old['units']} and is {new['units']}; set it back, or start a new checkpoint"
    if _rerouted(old, new):
        yield (
            "rows were routed in another way (join.strategy, join.subgroups); set it back, or start a new"
            " checkpoint"
        )
    if not read and passes_on(old) and passes_on(new):
        yield from _passing_differences(old, new)
        return
    named = [[(i["alias"], i["source"]) for i in plan["inputs"]] for plan in (old, new)]
    if named[0] != named[1]:
        was, now = (", ".join(s if a == s else f"{s} {a}" for a, s in n) for n in named)
        yield f"the inputs were {was} and are {now}; {_NEW}"
        return
    later = not read and not {"groups", "over"} & new.keys()  # whether a condition may come
    for before, after in zip(old["inputs"], new["inputs"], strict=True):
        yield from _input_differences(before, after, later)
    yield from _tree_differences(*(fixed(plan.get("tree"), read) for plan in (old, new)))
    yield from _joined_differences(old, new)


def _settled(groups: dict[str, Any] | None, read: bool) -> dict[str, Any] | None:
    """Return groups without HAVING where it may change: they come out once, and nobody stores which did."""
    once = groups is not None and groups["mode"] == "append" and bool(groups["of"])
    return {**groups, "having": None} if groups is not None and once and not read else groups


def _select_differences(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for column, now in new.items():
        was = old.get(column, now)  # earlier versions wrote nothing of it
        if was != now:
            yield f"{column}, which another stage reads, was {was} and would be {now}; {_NEW}"


def _by_hash(stage: dict[str, Any]) -> bool:
    """Return whether the hash of a row's key alone says in which unit the row is stored.

    Rows without a key may be copied to every unit, or be stored at random.
    """
    joins = isinstance(stage.get("tree"), dict)
    return stage.get("route") is None and not (joins and any(not plan["keys"] for plan in stage["inputs"]))


def _rerouted(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if old.get("route") == new.get("route"):
        return False
    # A checkpoint whose bands lie at random goes on so: it is planned again by what `scattered` says of it.
    return not (scattered(old) and not scattered(new) and (new["route"] or ())[2:])


def _joined_differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    alike = _shape(old.get("tree")) == _shape(new.get("tree"))
    known = "joined" in old and alike  # earlier versions wrote nothing of it
    for was, now in zip(old["joined"], new["joined"], strict=True) if known else ():
        if was != now:
            stored, needed = ", ".join(was), ", ".join(now)
            yield f"of rows joined so far the columns {stored} are stored, and the query needs {needed}; {_NEW}"


def _passing_differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Of an input of which nothing is stored it is known how far its time is, under whatever name."""
    said = [
        [(i["source"], i["time"] and i["time"].partition(".")[2]) for i in p["inputs"]] for p in (old, new)
    ]
    if said[0] != said[1]:
        was, now = (", ".join(f"{s} by {t}" if t else s for s, t in plan) for plan in said)
        yield f"the input and its event time were {was} and are {now}; {_NEW}"


def _input_differences(old: dict[str, Any], new: dict[str, Any], later: bool) -> Iterator[str]:
    """Yield why an input cannot go on. later: whether the stage may decide conditions that are new."""
    alias = new["alias"]
    yield from _strange(old, {*new, "changes", "maps", "twin"})
    if old.get("twin") != new.get("twin"):
        yield f"whether the rows of {alias} are stored once, with those of the same input, has changed; {_NEW}"
        return
    if old.get("maps") != new.get("maps"):
        yield f"what is computed of {alias} before it is read was different; {_NEW}"
        return
    if old.get("changes") != new.get("changes"):
        yield f"whether rows of {alias} may be deleted has changed (changes, upsert); {_NEW}"
    yield from _column_differences(alias, old["columns"], new["columns"])
    for field, title in _FIELDS.items():
        if old[field] != new[field]:
            hint = _hint(old, new) if later and field == "filter" else ""
            yield f"the {title} of {alias} was {_text(old[field])} and is {_text(new[field])}{hint}; {_NEW}"


_FIELDS = {"keys": "key", "filter": "filter", "time": "event time", "null_keys": "treatment of NULL keys"}


def _hint(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return what conditions may come later, where a filter would only have got more of them."""
    stored = [column for column in old["columns"] if "$" not in column]
    if stored and set(conjuncts(old["filter"])) < set(conjuncts(new["filter"])):
        return f" (a condition can come later if it reads only {', '.join(stored)})"
    return ""


def _column_differences(alias: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for column, value in new.items():
        if column not in old:
            yield f"{column} is not among the stored columns of {alias}; rows already stored lack it; {_NEW}"
        elif old[column] != value:
            was, now = (" ".join(c[column][:2]) for c in (old, new))
            yield f"{column} was stored as {was} and would be {now}; {_NEW}"
    for column in old:
        if column not in new:
            yield (
                f"{column} is stored but the query does not use it any more; select it, or start a new"
                " checkpoint"
            )
    if list(old) != list(new) and sorted(old) == sorted(new):
        yield f"the columns of {alias} are stored in another order; {_NEW}"


def _tree_differences(old: Any, new: Any) -> Iterator[str]:
    if not isinstance(old, dict) or not isinstance(new, dict) or _shape(old) != _shape(new):
        if old != new:
            yield f"the joins were {_shape(old)} and are {_shape(new)} (numbers are inputs); {_NEW}"
        return
    yield from _strange(old, new)
    labels = {"bounds": "time bounds", "predicate": "condition", "where": "condition above the join"}
    for field, label in labels.items():
        if old[field] != new[field]:
            yield (
                f"the {label} of the {new['kind']} join were {_text(old[field])} and are"
                f" {_text(new[field])}; {_NEW}"
            )
    for before, after in zip(old["inputs"], new["inputs"], strict=True):
        yield from _tree_differences(before, after)


def _shape(tree: Any) -> str:
    if not isinstance(tree, dict):
        return str(tree)
    return f"{tree['kind']}({', '.join(map(_shape, tree['inputs']))})"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(v) if isinstance(v, str) else describe(Bound(*v)) for v in value) or "none"
    return "none" if value is None else str(value)
