"""Where the outputs of a job end when another one is forked from it.

Rows in a topic or a table do not say of which batch they are. Noted at the batch behind which the fork begins, the end of
the output tells those behind it from those before, and so the results of both jobs can be compared.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from joinlib.errors import StateError
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output

if TYPE_CHECKING:
    from joinlib.compiled import Compiled
    from joinlib.model.stage import NamedResult
    from joinlib.sink.config import SinkConfig

End = Mapping[str, int]  # of a topic, by partition; of a table, the number of a transaction


def is_told(output: Output) -> bool:
    """Return whether rows of later batches are told by where the output has ended.

    Files are told by their folders; of upserts, the rows that are there now are compared.
    """
    return output.mode != "upsert" and (output.kafka is not None or output.postgres is not None)


def ends(document: StreamJoin, batch: int) -> dict[str, End]:
    """Return where the outputs of a job end behind a batch that is done; those are left out that have later rows already.

    Raises:
        StreamJoinError: An output cannot be reached, or does not take the results.
    """
    if not any(map(is_told, document.spec.results.values())):
        return {}
    from joinlib.compiled import compiled  # what it loads takes longer than a fork of files

    return dict(_ends(compiled(document, 1), batch))


def _ends(plan: "Compiled", batch: int) -> Iterator[tuple[str, End]]:
    for result, sink in zip(plan.pipeline.results, plan.join.sinks, strict=True):
        if is_told(plan.document.spec.results[result.name]):
            found = _of_table(plan, result, sink, batch) if sink.postgres else _of_topic(plan, sink, batch)
            if found is not None:
                yield result.name, found


def _of_table(plan: "Compiled", result: "NamedResult", sink: "SinkConfig", batch: int) -> End | None:
    from jobs.cli import result_tables
    from joinlib.checkpoint.identity import identity_of, owner_id

    assert sink.postgres is not None
    owner = owner_id(identity_of(plan.checkpoint), result.name)
    found = result_tables.end(sink.postgres, plan.pipeline.stages[result.stage].schema, owner, batch)
    return None if found is None else {result_tables.XID: found}


def _of_topic(plan: "Compiled", sink: "SinkConfig", batch: int) -> End | None:
    from jobs.cli import result_topics
    from joinlib.checkpoint import batches

    assert sink.kafka is not None

    def at_rest() -> bool:
        return batches.begun(plan.checkpoint / "spark") == batch

    if not at_rest():
        return None
    try:
        found = result_topics.ends(sink.kafka.spec)
    except StateError:
        return None
    return found if at_rest() else None
