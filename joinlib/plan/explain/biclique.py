"""Explains a join-biclique: where rows are stored, why, and the cost compared with a join-matrix (BiStream,
equations 1 to 6).
"""

from collections.abc import Iterator
from math import isqrt

from joinlib.model.inputs import Biclique, Group
from joinlib.model.joins import IndexCondition
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage
from joinlib.plan.explain.estimate import LARGE, share, share_text


def routes(stage: Stage) -> Iterator[str]:
    """Say, for each input, which units store it and which units it probes."""
    assert stage.route is not None
    cells = stage.route.cells
    for plan, group in zip(stage.inputs, stage.route.groups, strict=True):
        other = stage.route.groups[stage.route.partner(plan.number)]
        if plan.twin is not None:
            yield f"{plan.alias} goes with {stage.inputs[plan.twin].alias}, whose rows it has"
        elif cells is None:
            yield f"{plan.alias} is stored in {_units(group, 'key')}, and probes {_probed(other)}"
        else:
            cell = f"cell of {cells.values[plan.number].sql}"
            yield f"{plan.alias} is stored in {_units(group, cell)}, and probes {_probed(other)} for each of one or two cells"


def _units(group: Group, by: str) -> str:
    last = group.first + group.units - 1
    where = f"unit {last}" if group.units == 1 else f"units {group.first} to {last}"
    each = group.units // group.subgroups
    if group.subgroups == 1:
        return f"one of {where}, at random" if group.units > 1 else where
    if each == 1:
        return f"one of {where}, by its {by}; a hot {by.split(maxsplit=1)[0]} in several of them"
    return (
        f"one of {each} of {where}: which {each}, by its {by} (of {group.subgroups} subgroups), which one, at"
        " random"
    )


def _probed(group: Group) -> str:
    each = group.units // group.subgroups
    return "one unit" if each == 1 else f"{each} units" + ("" if group.subgroups > 1 else ", all of them")


def figures(stage: Stage) -> Iterator[str]:
    """Compare memory and traffic (equations 1, 2, 5 and 6) and the gain of
    one more unit (3, 4) with a join-matrix.
    """
    assert stage.route is not None
    (r, s), units = stage.route.groups, stage.units
    a, b = (plan.alias for plan in stage.inputs)
    rows, columns = matrix(units)
    if stage.route.once:
        copies = f"at most {_copied(r)} " if stage.route.cells is not None else _times(r.units // r.subgroups)
        yield f"state      {a}, not {_sum(1, a, 1, b)} (eq. 1); in a join-matrix: {_sum(columns, a, rows, b)} (eq. 2)"
        yield f"traffic    {copies}{a} (eq. 5); in the matrix {_sum(columns, a, rows, b)} (eq. 6)"
        return
    yield (
        f"state      {_sum(1, a, 1, b)} (eq. 1); in a join-matrix of {rows} x {columns}:"
        f" {_sum(columns, a, rows, b)} (eq. 2)"
    )
    if stage.route.cells is not None:
        yield (
            f"traffic    at most {_copied(s)} {a} + {_copied(r)} {b} where cells are many; in the matrix"
            f" {_sum(columns, a, rows, b)} (eq. 6)"
        )
        return
    if _together(stage.route):
        out, back = s.units // s.subgroups, r.units // r.subgroups
        less = ", less the copies that find both sides in one unit"
    else:
        out, back = s.units // s.subgroups + 1, r.units // r.subgroups + 1
        less = ""
    yield (
        f"traffic    {_sum(out, a, back, b)} (eq. 5{less}); in the matrix {_sum(columns, a, rows, b)} (eq. 6)"
    )
    yield (
        f"a unit more holds a unit more of new rows; a row more of the matrix first copies 1/{columns} of"
        f" {b} (eq. 3, 4)"
    )


def _copied(group: Group) -> str:
    """How many units a row of the other input visits: one row of four reaches two cells."""
    return f"{1.25 * (group.units // group.subgroups):g}"


def matrix(units: int) -> tuple[int, int]:
    """Rows and columns of the squarest join-matrix with this number of units, a power of two."""
    rows = 1 << (isqrt(units).bit_length() - 1)
    return rows, units // rows


def _together(route: Biclique) -> bool:
    return route.groups[0] == route.groups[1]


def _sum(first: int, a: str, second: int, b: str) -> str:
    return f"{_times(first)}{a} + {_times(second)}{b}"


def _times(number: int) -> str:
    return "" if number == 1 else f"{number} "


def why(stage: Stage, join: Operator) -> Iterator[str]:
    """Explain which rule chose the operator, and the estimate that the rule rests on."""
    if join.sides[0].keys:
        yield (
            "join.strategy biclique: each input is stored once; rows of a hot key lie in several units"
            " (ContRand)"
        )
        yield (
            "hot keys are found from the rows that arrived; a row probes every unit in which an older rule"
            " may have put a partner"
        )
        return
    cells = stage.route.cells if stage.route is not None else None
    if cells is not None:
        yield (
            f"a band: rows lie by the cells of their values, each {cells.width:g} wide, and visit those in which partners"
            " may lie; join.subgroups: 1 spreads them at random"
        )
    if stage.index == "sorted":
        yield f"no equality, but comparisons: stored rows are sorted, and found by {_arrays(join)}"
    else:
        yield (
            "no equality that determines a row's unit, and no comparison to sort by: a probe reads every"
            " stored row"
        )
    yield (
        f"{share_text(join)} are expected to match, of those kept at the same time:"
        f" {'rows' if cells else 'rows probe everywhere, and'} are stored once"
    )


def sorted_by_key(stage: Stage) -> Iterator[str]:
    """Explain the sorted index of a join by equality and comparisons, where the spec asks for it."""
    if stage.index == "sorted" and stage.route is None and stage.operators:
        yield (
            "join.strategy inequality: the rows of a key are kept sorted, and found by"
            f" {_arrays(stage.operators[-1])}"
        )


def _arrays(join: Operator) -> str:
    times = {c for b in join.bounds for c in (b.left, b.right)}
    by = (m for m in join.index_conditions if m.left.sql not in times)
    how = ", ".join(f"{m.left.sql} {m.sign} {m.right.sql}{_shift(m)}" for m in by) or "time"
    return f"permutation arrays ({how})"


def _shift(meet: IndexCondition) -> str:
    return "" if not meet.shift else f" {'-' if meet.shift < 0 else '+'} {abs(meet.shift):g}"


def warnings(stage: Stage, join: Operator) -> Iterator[str]:
    """Warn of a result that grows as the product of its inputs."""
    if join.kind == "inner" and not join.sides[0].keys and share(join) >= LARGE:
        yield (
            f"{share_text(join)} may match: the result may be much larger than the inputs. It is written in"
            " bounded frames and slows the inputs down; make the condition stricter, or bound the time"
        )
