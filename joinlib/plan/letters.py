"""Which rows of a plan become dead letters, and which cannot.

Law: a row becomes one where it would stop the job, or be dropped, and nowhere else.

    inputs.NAME.onError    rows that cannot be read, or for which an expression fails before they meet others: in map
                           tasks, and behind the stage of an upsert, whose rows are still those of the input
    inputs.NAME.onLate     late rows, where they are dropped
    output.onError         rows for which a condition between inputs or a select list fails, groups without a result, and
                           rows of window functions, in stages whose rows go to such outputs only; and on their way to
                           such a stage, so that outputs which share a join fail apart

Refused is what could fail for something that is no row: whether a pair is a match of an outer, semi or anti join, which
decides of rows that are not in it; a pair that several orders of probes see; and a sum that others are computed from.
"""

from collections.abc import Collection, Iterator

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.total import total
from joinlib.expr.types import is_decimal
from joinlib.model.letters import LetterBox, LetterName
from joinlib.model.stage import AnyStage, GroupStage, HopStage, OverStage, PathStage, Pipeline
from joinlib.spec.model import Spec
from joinlib.spec.output import field_of

_SUMMED = 28  # digits of a DECIMAL of which all rows together have no more than 38


def letters_of(plan: Pipeline, spec: Spec) -> LetterBox | None:
    """Return where dead letters of a job go; None: it keeps none.

    Raises:
        SpecError: Rows are to be kept that are not there as rows where they are left out.
    """
    if spec.dead_letters is None:
        return None
    late = frozenset(name for name, given in spec.inputs.items() if given.on_late == "deadLetter")
    _check_late(plan, late)
    failed = dict(_failed(plan, spec))
    _check_results(plan, spec, failed)
    for number, name in failed.items():
        if name.input is None:
            _check_conditions(plan.stages[number], name)
    return LetterBox(spec.dead_letters.path, late, failed, dict(_words(plan, failed)))


def _failed(plan: Pipeline, spec: Spec) -> Iterator[tuple[int, LetterName]]:
    """Yield the stages where failing rows are kept, with the input or the outputs by which these are called."""
    for number, (stage, outputs) in enumerate(zip(plan.stages, _outputs(plan), strict=True)):
        if "upsert" in {join.kind for join in stage.operators}:
            source = stage.inputs[0].source
            if spec.inputs[source].on_error == "deadLetter":
                yield number, LetterName(source, None)
        elif all(spec.results[name].on_error == "deadLetter" for name in outputs):
            yield number, LetterName(None, ", ".join(outputs))


def _words(plan: Pipeline, kept: Collection[int]) -> Iterator[tuple[str, str]]:
    """Yield what groups and window functions compute, and what their text calls it where that is something else."""
    from joinlib.plan.explain.words import saying  # it reads this package

    say = saying(plan)
    for number in kept:
        named = _named(plan.stages[number])
        told = [say(name) for name in named]
        yield from ((a, b) for a, b in zip(named, told, strict=True) if a != b and told.count(b) == 1)


def _named(stage: AnyStage) -> list[str]:
    """Return by which names the rows of a stage are told that joins nothing."""
    if isinstance(stage, GroupStage):
        grouping = stage.grouping
        return [*(key.sql for key in grouping.keys), *(call.sql for call in grouping.every)]
    if isinstance(stage, OverStage):
        return [*dict(stage.over.columns), *(call.sql for call in stage.over.calls)]
    return []


def _outputs(plan: Pipeline) -> list[list[str]]:
    """Return, for each stage, the names of the outputs that its rows go to."""
    found = [[result.name for result in plan.results if result.stage == n] for n in range(len(plan.stages))]
    for number in reversed(range(len(plan.stages))):
        for reader, _ in plan.readers(number):
            found[number] = list(dict.fromkeys([*found[number], *found[reader]]))
    return found


def _check_late(plan: Pipeline, late: frozenset[str]) -> None:
    """Check that late rows are rows of one input each, or of several that all keep theirs."""
    for stage in plan.stages if late else ():
        for one in stage.inputs:
            sources = plan.late_of(one)
            name = next((source for source in sources if source in late), None)
            if name is None:
                continue
            if isinstance(stage, GroupStage) and stage.timed:
                raise SpecError(
                    f"inputs.{name}.onLate: is deadLetter, but rows of {name} go straight into groups, which drop late"
                    " ones as sums of many rows; remove it, and late rows are counted"
                )
            other = next((source for source in sources if source not in late), None)
            if other is not None and one.time is not None:
                raise SpecError(
                    f"inputs.{name}.onLate: is deadLetter, but rows of {name} are united with those of {other}"
                    f" before late ones are dropped; write it for {other}, too, or remove it"
                )


def _check_results(plan: Pipeline, spec: Spec, kept: Collection[int]) -> None:
    """Check that each output that keeps failing rows has some that are not those of an input."""
    outputs = _outputs(plan)
    for result in plan.results:
        own = [n for n, names in enumerate(outputs) if result.name in names]
        made = any(_makes(plan.stages[n]) for n in own if n in kept)
        read = any(reader in kept for n in own for reader, _ in plan.readers(n) if reader in own)
        able = made or read or isinstance(plan.stages[result.stage], HopStage)
        if spec.results[result.name].on_error == "deadLetter" and not able:
            raise SpecError(
                f"{field_of(result.name)}.onError: is deadLetter, but nothing is joined or grouped before its rows are"
                " made; write inputs.NAME.onError: deadLetter, which keeps rows that fail before they are joined"
            )


def _makes(stage: AnyStage) -> bool:
    """Return whether the rows of a stage are others than those of an input."""
    return isinstance(stage, GroupStage | OverStage) or bool(stage.operators or stage.lookups)


_KINDS = {"left": "a LEFT JOIN", "full": "a FULL JOIN", "semi": "a SEMI JOIN", "anti": "an ANTI JOIN"}


def _check_conditions(stage: AnyStage, name: LetterName) -> None:
    """Check that what fails in a stage fails for rows that can be left out."""
    field = f"{field_of((name.output or '').partition(', ')[0])}.onError: is deadLetter, but"
    for kind, condition in _deciding(stage):
        if not total(condition.node):
            raise SpecError(
                f"{field} {condition.excerpt}, a condition of {kind}, may fail for a pair of rows, and then nobody knows"
                " whether it is a match; write it so that it gives NULL instead, by try_divide, try_add, TRY_CAST and"
                " the like"
            )
    for condition in _probed(stage):
        if not total(condition.node):
            raise SpecError(
                f"{field} {condition.excerpt} may fail for a pair of rows, which a join by paths sees more than once; write"
                " join.strategy: stages, or the hint STAGES"
            )
    for call in stage.over.calls if isinstance(stage, OverStage) else ():
        summed = call.arguments[0][1] if call.function in ("sum", "avg") else None
        if summed is not None and is_decimal(summed) and summed.precision > _SUMMED:
            raise SpecError(
                f"{field} {call.sql} may have more than 38 digits, which others are computed from; CAST its argument to"
                f" DECIMAL({_SUMMED}, {min(summed.scale, _SUMMED)})"
            )


def _deciding(stage: AnyStage) -> Iterator[tuple[str, Expr]]:
    """Yield the conditions that decide of rows that are not in the pair, with the kind of their join."""
    for op in stage.operators:
        if op.kind in _KINDS and op.predicate is not None:
            yield _KINDS[op.kind], op.predicate
    for lookup in stage.lookups:
        if lookup.kind in _KINDS and lookup.predicate is not None:
            yield f"{_KINDS[lookup.kind]} with {lookup.table.alias}", lookup.predicate


def _probed(stage: AnyStage) -> Iterator[Expr]:
    """Yield the conditions of a join by paths."""
    for leg in stage.legs if isinstance(stage, PathStage | HopStage) else ():
        yield from (hop.operator.residual for hop in leg.hops if hop.operator.residual is not None)
