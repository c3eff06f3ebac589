"""Takes tuples of a path join one leg further, in one unit and batch.

    tuples ─► probe ─► … ─► probe ─► longer tuples        all by one key, so in one unit

Each probe says whether it sees the state as it is after the batch or as it was before (`joinlib.path.route`): so
of rows that match and come in one batch, only those of the last input find all others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from joinlib.chunks import chunked
from joinlib.join.arrived import Block, Blocks
from joinlib.join.order.routes import hop_counts
from joinlib.join.order.watch import Watch
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.model.paths import Hop, Leg
from joinlib.model.stage import HopStage, PathStage
from joinlib.model.tuning import Tuning
from joinlib.route.split import block_schema
from joinlib.state.manifest import Manifest
from joinlib.state.side import Side


class HopUnit:
    """One batch of one unit of a HopStage.

    store: the stage of the sides. sides: after the batch; none if no tuples come. manifest: the unit's own, which
    has no rows. asked: the manifest of the sides.
    """

    def __init__(
        self,
        stage: HopStage,
        store: PathStage,
        sides: Sequence[Side],
        tuning: Tuning,
        manifest: Manifest,
        asked: Manifest,
    ) -> None:
        self.stage, self.store, self.sides, self.tuning, self.asked = stage, store, sides, tuning, asked
        self.manifest = manifest
        self.closed = False  # no more tuples will come
        self.deleted = self.unknown = [0] * len(stage.inputs)

    def run(self, batch: int, blocks: Blocks) -> Iterator[tuple[int, Tuples]]:
        """Yield longer tuples, each with its route; then the manifest is that after the batch."""
        self.closed = any(tick.closed for tick in blocks.ticks)
        counted = hop_counts(self.manifest.probes, self.asked.probes, self.store, self.tuning)
        ordered = sorted(blocks.rows, key=lambda block: block[:2])
        for number, own in groupby(ordered, lambda block: block[0]):
            leg, schema = self.stage.legs[number], block_schema(self.stage.inputs[number])
            for some in chunked(own, _rows, self.tuning.frame_rows):
                rows = concat([rows for _, _, rows, _ in some], schema)
                origin, watch = self.store.paths[leg.route].start, counted.watch
                for found in walked(leg, self.sides, self.tuning, origin, rows, watch):
                    yield leg.route, found
        watermark = max(self.manifest.watermark, self.asked.watermark)
        self.manifest = replace(self.manifest, batch=batch, watermark=watermark, probes=counted.plain())


def walked(
    leg: Leg, sides: Sequence[Side], tuning: Tuning, origin: int, rows: pa.RecordBatch, watch: Watch | None
) -> Iterator[Tuples]:
    """Yield what tuples find along a leg. origin: the input whose new rows they come of.

    Depth first, so that memory holds one bounded chunk for each probe.
    """
    probers = [_prober(hop, sides, tuning, watch) for hop in leg.hops]

    def further(tuples: Tuples, probes: Sequence[Prober]) -> Iterator[Tuples]:
        if not probes:
            yield tuples
            return
        for longer in probes[0].extend(tuples, frozenset([0]), 1):
            yield from further(longer, probes[1:])

    for piece in [rows] if watch is None else watch.pieces(origin, rows):
        yield from further(Tuples(Picked(piece)), probers)


def _prober(hop: Hop, sides: Sequence[Side], tuning: Tuning, watch: Watch | None) -> Prober:
    both = [sides[hop.side]] * 2  # the first side is the tuples
    return Prober(hop.operator, both, tuning, watch, before=not hop.after, pair=(hop.asker, hop.side))


def _rows(block: Block) -> int:
    return block[2].num_rows
