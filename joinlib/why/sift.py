"""What an input of a stage does with its rows before they join: maps, filter, key; and the first clause that fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.logic import conjuncts
from joinlib.model.inputs import WEIGHT, InputPlan
from joinlib.model.maps import Map
from joinlib.route.maps import columns_of, mapped
from joinlib.why.few import Few, Origin, table, whole
from joinlib.why.verdict import Filtered, KeyIsNull, Values, Verdict

NO_ELEMENT = "the list of which each element is a row has none"


@dataclass(frozen=True)
class Dropped:
    """A row that does not count, with its key as far as it has one."""

    origin: Origin
    verdict: Verdict
    row: dict[str, object]  # the stored columns that could be computed


@dataclass(frozen=True)
class Sifted:
    """The rows of an input: those that join, and the others."""

    kept: Few
    lost: tuple[Dropped, ...]


def sift(plan: InputPlan, rows: pa.Table, origins: Sequence[Origin]) -> Sifted:
    """Return what an input makes of rows of its source, or of a stage below."""
    batch = _positioned(rows)
    lost: list[Dropped] = []
    for step in plan.maps:
        batch, gone = _mapped(plan, step, batch)
        lost += [Dropped(origins[at], verdict, {}) for at, verdict in gone.items()]
    names = [f"{plan.alias}.{n}" if f"{plan.alias}.{n}" in _read(plan) else n for n in batch.schema.names]
    few = Few(
        pa.table(batch.columns, names=names), tuple(origins[at] for at in batch.column(WEIGHT).to_pylist())
    )
    for clause in conjuncts(plan.filter) if plan.filter is not None else ():
        passing = few.truth(clause)
        failed = few.where([not one for one in passing])
        verdicts = [Filtered(clause.sql, values) for values in _made_values(plan, clause, failed.rows)]
        lost += _lost(plan, failed, verdicts)
        few = few.where(passing)
    kept = _stored(plan, few)
    if plan.keys and not plan.keep_null_keys and not plan.null_is_value:
        whole = [None not in key for key in kept.values(plan.keys)]
        columns = tuple(c.value.sql for c in plan.columns if c.name in plan.keys)
        keyless = few.where([not one for one in whole])
        lost += _lost(plan, keyless, [KeyIsNull(columns)] * len(keyless.origins))
        kept = kept.where(whole)
    return Sifted(kept, tuple(lost))


def key_mask(
    plan: InputPlan, rows: pa.RecordBatch, columns: Sequence[str], wanted: pa.Array
) -> npt.NDArray[np.bool_]:
    """Return which rows of a source have, in the first of the stored columns `columns`, one of the wanted values."""
    batch = _positioned(pa.Table.from_batches([rows]))
    made = mapped(batch, plan.maps)
    value = next(c.value for c in plan.columns if c.name == columns[0])
    found = value.evaluate(columns_of(plan, made), made.num_rows)
    hits = pc.is_in(found, value_set=wanted)
    mask = np.zeros(rows.num_rows, np.bool_)
    mask[made.column(WEIGHT).filter(hits).to_numpy()] = True
    return mask


def stored_value(plan: InputPlan, rows: pa.RecordBatch, column: str) -> pa.Array | pa.ChunkedArray:
    """Return a stored column of rows of a source that has no maps."""
    value = next(c.value for c in plan.columns if c.name == column)
    made = mapped(rows, plan.maps)
    return value.evaluate(columns_of(plan, made), made.num_rows)


def _read(plan: InputPlan) -> set[str]:
    """Return the names of columns as the expressions of an input call them."""
    values = [c.value for c in plan.columns] + [v for v in (plan.filter, plan.apart) if v is not None]
    return {name for value in values for name in value.columns}


def _positioned(rows: pa.Table) -> pa.RecordBatch:
    """Return rows with their positions where weights are: maps keep those with every row that they make."""
    return whole(rows.append_column(WEIGHT, pa.array(np.arange(rows.num_rows))))


def _mapped(plan: InputPlan, step: Map, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, Verdict]]:
    """Return what a map makes of rows, and by position why others go."""
    gone: dict[int, Verdict] = {}
    before = set(batch.column(WEIGHT).to_pylist())
    clauses = conjuncts(step.filter) if step.filter is not None else []
    for clause in clauses:
        left = set(mapped(batch, (replace(step, filter=clause),)).column(WEIGHT).to_pylist())
        values = dict(zip(batch.column(WEIGHT).to_pylist(), _made_values(plan, clause, batch), strict=True))
        gone |= {at: Filtered(clause.sql, values[at]) for at in before - left - gone.keys()}
    after = mapped(batch, (step,))
    rest = before - set(after.column(WEIGHT).to_pylist()) - gone.keys()
    return after, gone | dict.fromkeys(rest, Filtered(NO_ELEMENT))


def _stored(plan: InputPlan, few: Few) -> Few:
    columns = [(c.name, _array(c.value.evaluate(few.read, few.rows.num_rows))) for c in plan.columns]
    return Few(table(columns, few.rows.num_rows), few.origins)


def _made_values(plan: InputPlan, clause: Expr, rows: pa.Table | pa.RecordBatch) -> list[Values]:
    """Return for each row the values that a condition reads, if an earlier stage has made them: nothing else shows them."""
    names = clause.columns if plan.upstream is not None else ()
    columns = [rows.column(name).to_pylist() for name in names]
    values = zip(*columns, strict=True) if names else [()] * rows.num_rows
    return [tuple(zip(names, row, strict=True)) for row in values]


def _lost(plan: InputPlan, few: Few, verdicts: Sequence[Verdict]) -> list[Dropped]:
    """Return rows as lost, with what they would have stored if that can be computed."""
    if not few.origins:
        return []
    try:
        rows = _stored(plan, few).rows.to_pylist()
    except SpecError:  # the clause has kept the engine from computing it as well
        rows = [{} for _ in few.origins]
    return [Dropped(*one) for one in zip(few.origins, verdicts, rows, strict=True)]


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
