"""`streamjoin why` and `streamjoin whynot`: which rows a result was made of, and what became of rows that are missing.

    orders o: 1 of 3 rows meets the condition
      data/orders/1.csv, row 2, batch 0
        left out by `o.amount > 10`

Read from the checkpoint and the inputs: Spark is not started, nothing is written, and a job may run meanwhile.
"""

from collections.abc import Iterator, Sequence
from functools import singledispatch

from jobs.cli import words
from jobs.cli.summary import near
from joinlib.checkpoint.planned import plan_of
from joinlib.plan.explain.texts import bare
from joinlib.plan.explain.words import saying
from joinlib.spec.duration import text as duration
from joinlib.spec.model import StreamJoin
from joinlib.why import answer
from joinlib.why.over import MOST_READ
from joinlib.why.verdict import (
    Beyond,
    Counted,
    Excluded,
    Excludes,
    Failed,
    Filtered,
    Found,
    GroupRefused,
    InGroup,
    KeyIsNull,
    Late,
    Limit,
    Looked,
    NoNearest,
    NoPartner,
    NotInTable,
    NotNearest,
    PartnerRefused,
    Replaced,
    ResultRow,
    RowGroup,
    SourceRow,
    TooFar,
    TooLate,
    Unmatched,
    Unqualified,
    Unread,
    Unsettled,
    Verdict,
    Waiting,
    Withdrawn,
)

_MOST = 20  # rows that are shown of an input, and of the result


def whynot(document: StreamJoin, condition: str) -> str:
    """Return several lines for people."""
    say = saying(plan_of(document))
    inputs = ("\n".join(_input(looked)) for looked in answer.whynot(document, condition))
    return "\n".join(map(say, dict.fromkeys(inputs)))  # a rewrite may read an input several times


def why(document: StreamJoin, condition: str) -> str:
    """Return several lines for people."""
    rows, notes = answer.why(document, condition)
    lines = [line for row in rows[:_MOST] for line in _result(row)]
    if not rows:
        lines.append(
            "no row of the result meets the condition; `streamjoin whynot` says what became of its parts"
        )
    if len(rows) > _MOST:
        lines.append(f"and {words.number(len(rows) - _MOST)} rows more")
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


# --- rows ---------------------------------------------------------------------------------------------


def _input(looked: Looked) -> Iterator[str]:
    name = _called(looked)
    if not looked.by:
        yield f"{name}: has no column {', '.join(looked.unknown)}, so it is only asked for partners"
        return
    asked = f"`{bare(looked.by)}`" if looked.unknown else "the condition"
    count = len(looked.fates)
    meets = "meets" if count == 1 else "meet"
    yield f"{name}: {words.number(count) if count else 'none'} of {words.rows(looked.rows)} {meets} {asked}"
    for fate in looked.fates[:_MOST]:
        yield f"  {_place(fate.row)}"
        for verdict in fate.verdicts or (Beyond("nothing more is known of it"),):
            yield f"    {said(verdict)}"
    if count > _MOST:
        yield f"  and {words.rows(count - _MOST)} more"
    for note in looked.notes:
        yield f"  note: {note}"


def _result(row: ResultRow) -> Iterator[str]:
    to = f"{row.output}: " if row.output else ""
    yield f"the group {_values(row.values)}" if row.group else f"{to}{_values(row.values)}"
    for one in row.rows[:_MOST]:
        yield f"  from {_called(one)}: {_place(one)}"
    yield from (f"  {more}" for more in _more(row.rows))
    for one in row.read[:_MOST]:
        yield f"  by window functions from {_called(one)}: {_place(one)}"
    yield from (f"  {more}" for more in _more(row.read, MOST_READ))


def _more(rows: Sequence[SourceRow], known: int | None = None) -> list[str]:
    """Return how many rows of inputs are not shown; known: how many of them are known at most."""
    left = len(rows) - _MOST
    least = "at least " if known is not None and len(rows) >= known else ""
    return [f"and {least}{words.rows(left)} more"] if left > 0 else []


def _called(row: SourceRow | Looked) -> str:
    """Return an input as the SQL has it."""
    return row.source if row.alias == row.source else f"{row.source} {row.alias}"


def _place(row: SourceRow) -> str:
    """Return where a row came from, and which batch read it."""
    if row.partition is not None:
        at = f"topic {row.file}, partition {row.partition}, offset {row.at}"
    else:
        at = f"{near(row.file)}, row {row.at}" if row.file else f"row {row.at}"
    if row.batch is None:
        return at
    return f"{at}, batch {row.batch}{'' if row.exact else ' or earlier'}"


def _values(values: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in values)


def _value(value: object) -> str:
    return "NULL" if value is None else words.value(value)


def _other(row: SourceRow | None) -> str:
    return f"{_called(row)} at {_place(row)}" if row is not None else "another input"


# --- verdicts -----------------------------------------------------------------------------------------


@singledispatch
def said(verdict: Verdict) -> str:
    """Return a verdict in words."""
    raise NotImplementedError(type(verdict))


@said.register
def _(verdict: Filtered) -> str:
    values = f": {_are(verdict.values)}" if verdict.values else ""
    return f"left out by `{bare(verdict.clause)}`{values}"


@said.register
def _(verdict: KeyIsNull) -> str:
    return f"its key is NULL ({', '.join(verdict.columns)}), which equals nothing"


@said.register
def _(verdict: Late) -> str:
    by = f"{duration(verdict.by_us)} behind the watermark {words.moment(verdict.watermark_us)}"
    if verdict.sure:
        return f"late by {by}, and left out{_dead(verdict.dead)}"
    return f"perhaps late: by at most {by}; its batch is not kept any more, so it is taken as in time here"


@said.register
def _(verdict: Failed) -> str:
    return f"fails: {verdict.error}" + (_dead(verdict.dead) if verdict.dead else "; it stops the job")


def _dead(folder: str | None) -> str:
    return f"; it is a dead letter in {near(folder)}" if folder is not None else ""


@said.register
def _(verdict: Unread) -> str:
    return (
        "not read yet" if verdict.batch is None else f"being read by batch {verdict.batch}, which is not done"
    )


@said.register
def _(verdict: Withdrawn) -> str:
    return "a deletion" if verdict.by is None else f"deleted by {_other(verdict.by)}"


@said.register
def _(verdict: Replaced) -> str:
    return f"replaced by {_other(verdict.by)}, which has its key"


@said.register
def _(verdict: NoPartner) -> str:
    near = f" (nearest: {', '.join(verdict.nearest)})" if verdict.nearest else ""
    lines = [f"no partner in {verdict.input} with {verdict.key}{near}; {_until(verdict.limit)}"]
    if verdict.lost:
        lines[0] = f"no partner in {verdict.input} with {verdict.key} that counts; {_until(verdict.limit)}"
    lines += [f"  {_place(row)}: {said(reason)}" for row, reason in verdict.lost]
    return "\n    ".join(lines)


@said.register
def _(verdict: TooFar) -> str:
    by = f"{duration(verdict.by_us)} outside of {verdict.bound}"
    return f"its partner is {by}: {_other(verdict.partner)}; {_until(verdict.limit)}"


@said.register
def _(verdict: Unmatched) -> str:
    partner = f", {_other(verdict.partner)}" if verdict.partner is not None else ""
    values = f": {_are(verdict.values)}" if verdict.values else ""
    return f"`{bare(verdict.clause)}` is not true with its partner{partner}{values}"


@said.register
def _(verdict: NotInTable) -> str:
    key = f" with {verdict.key}" if verdict.key else ""
    return f"no row{key} in table {verdict.table} that matches, as of version {verdict.version}"


@said.register
def _(verdict: Excluded) -> str:
    return f"has a partner, so the anti join leaves it out: {_other(verdict.partner)}"


@said.register
def _(verdict: Excludes) -> str:
    if verdict.partner is None:
        return "is only asked for by an anti join, and takes no row out"
    return f"is only asked for by an anti join, and takes out {_other(verdict.partner)}"


@said.register
def _(verdict: Waiting) -> str:
    lines = [f"has no partner, and comes out without one later: {_until(verdict.limit)}"]
    if verdict.why is not None:
        lines.append(f"  {said(verdict.why).partition('; ')[0]}")
    return "\n    ".join(lines)


@said.register
def _(verdict: Counted) -> str:
    group = _group(verdict.group)
    having = f", if `{bare(verdict.group.having)}`" if verdict.group.having else ""
    if verdict.limit is None:
        return f"counts in {group}, which is in the result{having}"
    if verdict.limit.over:
        return f"counts in {group}, which has come out{having}"
    when, now = _later(verdict.limit, verdict.timed)
    return f"counts in {group}, which {when}{having}{now}"


@said.register
def _(verdict: InGroup) -> str:
    group = f"counts in {_group(verdict.group)}"
    if verdict.limit is None:
        return group
    return f"{group}, which {''.join(_later(verdict.limit, verdict.timed))}"


@said.register
def _(verdict: TooLate) -> str:
    return f"late: {_group(verdict.group)} had come out when it came, and takes no more rows"


def _group(group: RowGroup) -> str:
    return f"the group {_values(group.keys)}" if group.keys else "the only group"


@said.register
def _(verdict: GroupRefused) -> str:
    values = "".join(f", {_are([value])}" for value in verdict.values)
    group = f"{_group(verdict.group)} has {words.rows(verdict.rows)}{values}"
    return f"left out by `{bare(verdict.clause)}`: {group}"


def _are(values: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{bare(name)} is {_value(value)}" for name, value in values)


@said.register
def _(verdict: Unqualified) -> str:
    values = f"it is {_value(verdict.values[0][1])}" if len(verdict.values) == 1 else _are(verdict.values)
    first = f"; first is {_other(verdict.first)}" if verdict.first is not None else ""
    return f"left out by `{bare(verdict.clause)}`" + (f": {values}{first}" if values else "")


@said.register
def _(verdict: NoNearest) -> str:
    return f"no partner in {verdict.input}: no row with its key is {verdict.where}"


@said.register
def _(verdict: NotNearest) -> str:
    later = f"; the next one of its key is at {_place(verdict.next)}" if verdict.next is not None else ""
    return f"it is not the nearest row for any of {verdict.input} so far{later}"


@said.register
def _(verdict: PartnerRefused) -> str:
    if verdict.clause:
        return f"left out by `{bare(verdict.clause)}` with its partner, {_other(verdict.partner)}"
    return f"a further condition of the as-of join is not true with its nearest partner, {_other(verdict.partner)}"


@said.register
def _(verdict: Unsettled) -> str:
    when, now = _later(verdict.limit, verdict.timed)
    why = "rows before it may still come" if verdict.timed else "its window functions wait for all rows"
    return f"{when}, as {why}{now}"


@said.register
def _(verdict: Beyond) -> str:
    return f"{verdict.what}: from here on rows are not followed one by one"


@said.register
def _(verdict: Found) -> str:
    lines = ["is in the result"]
    for row in verdict.results[:_MOST]:
        batch = f" of batch {row.batch}" if row.batch is not None else ""
        lines.append(f"  a row{batch}, from {_listed(row.rows)}")
        if row.read:
            lines[-1] += f"; by window functions from {_listed(row.read, MOST_READ)}"
    return "\n    ".join(lines)


def _listed(rows: Sequence[SourceRow], known: int | None = None) -> str:
    return "; ".join([*(f"{_called(one)} at {_place(one)}" for one in rows[:_MOST]), *_more(rows, known)])


def _until(limit: Limit) -> str:
    """Return until when a row waits, and for what."""
    if limit.until_us is None:
        return "the inputs have ended" if limit.over else "it waits for one until the inputs end"
    if limit.over:
        return f"it expired when the watermark passed {words.moment(limit.until_us)}"
    return f"it waits until the watermark passes {words.moment(limit.until_us)}; {_now(limit)}"


def _later(limit: Limit, timed: bool) -> tuple[str, str]:
    """Return when what waits comes out, and where the watermark is that it waits for."""
    if timed:
        return "comes out when the watermark has passed it", f"; {_now(limit)}"
    return "comes out when the inputs end", ""


def _now(limit: Limit) -> str:
    """Return where the watermark is, and which input holds it back."""
    held = f", held back by {limit.holder}" if limit.holder else ""
    if limit.holder and limit.holder_us is None:
        held += ", of which no row has come"
    return f"the watermark is {words.moment(limit.watermark_us)}{held}"
