"""What processes exchange that run a batch without Spark."""

from collections import Counter
from collections.abc import Iterable

from joinlib.compiled import compiled
from joinlib.engine import partition
from joinlib.engine.composer import Composer
from joinlib.engine.partition import Sent
from joinlib.engine.wire import BLOCK
from tests.laws.product import own_folder
from tests.unit.why.lived import document
from tests.unit.why.test_whynot import CHAIN, CUSTOMER, ONE


def test_rows_lie_in_one_file_until_their_level_reads_them() -> None:
    """Those of inputs of a later level are written once, by who reads the input."""
    with own_folder() as folder:
        job = document(folder, CHAIN, {**ONE, **CUSTOMER, "regions": [["1,north"]]}, {"join": {"units": 4}})
        plan = compiled(job, 2)
        plan.join.exchange.mkdir(parents=True)
        composer = Composer(plan.source)
        composer.bound()
        end = composer.after(start := composer.initial())
        sent = [partition.read(plan.source, plan.join, part, 2) for part in composer.parts(start, end)]
        levels = plan.pipeline.levels
        assert len(levels) == 3
        came = blocks(sent)
        for level in range(2):
            arrived = [[(file, spans[level][to]) for file, spans in sent] for to in range(2)]
            sent += [partition.forward(plan.join, level, 0, (to, 2), own) for to, own in enumerate(arrived)]
        made = blocks(sent) - came
    inputs = {
        (n, i.number) for n, s in enumerate(plan.pipeline.stages) for i in s.inputs if i.upstream is None
    }
    assert set(came) == inputs
    assert made.keys().isdisjoint(inputs), "rows of an input were sent on"
    assert made, "no stage has sent rows on"


def blocks(sent: Iterable[Sent]) -> Counter[tuple[int, int]]:
    """How many rows lie in files, by stage and input."""
    found: Counter[tuple[int, int]] = Counter()
    for file, levels in sent:
        for partitions in levels:
            for rows in partition._rows([(file, spans) for spans in partitions]):
                for row in rows.select(["stage", "kind", "input", "rows"]).to_pylist():
                    if row["kind"] == BLOCK:
                        found[row["stage"], row["input"]] += row["rows"]
    return found
