"""Which rows of a plan become dead letters, and which cannot.

Law: a row becomes one where it would stop the job, or be dropped, and nowhere else.

    inputs.NAME.onError    rows that cannot be read, or for which an expression fails before they meet others: in map
                           tasks, and behind the stage of an upsert, whose rows are still those of the input
    inputs.NAME.onLate     late rows, where they are dropped
    output.onError         joined rows for which a select list fails, in stages whose rows go to such outputs only;
                           and on their way to such a stage, so that outputs which share a join fail apart
"""

from collections.abc import Collection, Iterator

from joinlib.errors import SpecError
from joinlib.model.letters import LetterBox, LetterName
from joinlib.model.stage import GroupStage, HopStage, Pipeline
from joinlib.spec.model import Spec
from joinlib.spec.output import field_of


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
    return LetterBox(spec.dead_letters.path, late, failed)


def _failed(plan: Pipeline, spec: Spec) -> Iterator[tuple[int, LetterName]]:
    """Yield the stages where failing rows are kept, with the input or the outputs by which these are called."""
    for number, (stage, outputs) in enumerate(zip(plan.stages, _outputs(plan), strict=True)):
        if "upsert" in {join.kind for join in stage.operators}:
            source = stage.inputs[0].source
            if spec.inputs[source].on_error == "deadLetter":
                yield number, LetterName(source, None)
        elif all(spec.results[name].on_error == "deadLetter" for name in outputs):
            yield number, LetterName(None, ", ".join(outputs))


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
    """Check that each output that keeps failing rows has a select list over rows, and not over groups alone."""
    outputs = _outputs(plan)
    for result in plan.results:
        own = [n for n, names in enumerate(outputs) if result.name in names]
        joined = any(plan.stages[n].operators or plan.stages[n].lookups for n in own if n in kept)
        read = any(reader in kept for n in own for reader, _ in plan.readers(n) if reader in own)
        able = joined or read or isinstance(plan.stages[result.stage], HopStage)
        if spec.results[result.name].on_error == "deadLetter" and not able:
            raise SpecError(
                f"{field_of(result.name)}.onError: is deadLetter, but nothing is joined before its rows are made; write"
                " inputs.NAME.onError: deadLetter, which keeps rows that fail before they are joined"
            )
