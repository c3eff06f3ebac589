"""Processes the exchange rows of a partition: results go to a sink, out as rows, or to the next stage."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from joinlib import fault
from joinlib.engine import receipt
from joinlib.engine.exchange import passed, rules_of, split_by_stage
from joinlib.engine.forward import forwarding
from joinlib.engine.receipt import Said
from joinlib.engine.turn import Turn
from joinlib.sink.changing import shown
from joinlib.sink.letters import counted, write
from joinlib.sink.sink import open_sink

Batches = Iterator[pa.RecordBatch]


def forwarded(turns: Sequence[Turn], batches: Batches) -> Batches:
    """Yield the rows of inner stages as exchange rows; rows for later stages pass through unchanged.

    `turns`: of all stages of a level.
    """
    own: list[list[pa.RecordBatch]] = [[] for _ in turns]
    for passing in _apart(turns, own, batches):
        if passing.num_rows:
            yield passing
    for turn, rows in zip(turns, own, strict=True):
        yield from _forwarded(turn, rows)


def _apart(turns: Sequence[Turn], own: Sequence[list[pa.RecordBatch]], batches: Batches) -> Batches:
    """Add each stage's rows to those in `own`; yield the others."""
    for batch in batches:
        passing = batch
        for turn, rows in zip(turns, own, strict=True):
            mine, passing = split_by_stage(passing, turn.task.number)
            rows.append(mine)
        yield passing


def _forwarded(turn: Turn, own: list[pa.RecordBatch]) -> Batches:
    rules, rows_of_units = rules_of(own)
    onward = forwarding(turn.task, turn.batch, turn.partition, rules)
    made = (turn.unit(unit).onward(rows, save, onward) for unit, rows, save in turn.units(rows_of_units))
    yield from onward.send(chain.from_iterable(made))
    turn.end()


def receipts(turns: Sequence[Turn], attempt: int, batches: Batches) -> list[Said]:
    """Write the results into the sinks and return a receipt per unit and stage.

    `turns`: of all stages that make results; no manifest is saved before every sink has all its rows.
    `attempt` is the number of this attempt at the task, by which Spark counts them.
    """
    own: list[list[pa.RecordBatch]] = [[] for _ in turns]
    told, letters = list[Said](), list[pa.RecordBatch]()
    for passing in _apart(turns, own, batches):
        texts, sent = passed(passing)
        told += [(text, None) for text in texts]
        letters += sent
    for turn, rows in zip(turns, own, strict=True):
        told += _written(turn, attempt, rows, letters)
        fault.point("written", turn.batch)
    if letters:
        text, block = told.pop()
        told.append((_kept(turns[0], attempt, letters, text), block))
    for turn in turns:
        turn.end()
    return told


def _kept(turn: Turn, attempt: int, letters: Sequence[pa.RecordBatch], told: str) -> str:
    """Write dead letters; return a receipt of this task that tells of them as well."""
    task, batch = turn.task, turn.batch
    assert task.letters is not None
    file = write(task.letters.folder, letters, turn.partition, batch, attempt, task.tuning.sync)
    fault.point("lettered", batch)
    return replace(receipt.decode(told), letters=(file,), dead=counted(letters)).encode()


def _written(
    turn: Turn, attempt: int, own: list[pa.RecordBatch], letters: list[pa.RecordBatch]
) -> list[Said]:
    """Write the results of a stage into its sink; return the receipts of its units, with the rows to show.

    Dead letters are added to `letters`.
    """
    task, told = turn.task, list[Said]()
    sink = open_sink(
        task.sink,
        task.stage.schema,
        task.tuning,
        partition=turn.partition,
        batch=turn.batch,
        attempt=attempt,
    )
    for unit, rows, save in turn.units(own):
        work = turn.unit(unit)
        made, block = work.receipt(rows, save, sink)
        letters += work.letters
        told.append((made.encode(), block))
    sink.close()
    return told


def results(turn: Turn, schema: pa.Schema, batches: Batches) -> Batches:
    """Yield the results as rows of `schema`; those that change say how, in `_change_type`."""
    for unit, rows, save in turn.units(batches):
        for frame in shown(turn.unit(unit).frames(rows, save), turn.task.sink):
            yield frame.cast(schema)
    turn.end()
