"""Makes the partials of windows from those of panes (`model.panes`)."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from joinlib.aggregate.partial import Partials, merge, steps
from joinlib.expr import ref
from joinlib.model.grouping import Grouping
from joinlib.model.panes import Panes
from joinlib.route.maps import mapped


class PanePartials:
    """The partials of a unit's batch, as `Partials`, of rows with their pane."""

    def __init__(self, panes: Panes, grouping: Grouping) -> None:
        self._grouping, self._panes = grouping, Partials(panes.grouping)
        sums = tuple((name, ref(name, kind)) for name, kind, _ in steps(grouping))
        self._windows = replace(panes.windows, columns=(*panes.windows.columns, *sums))

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of `Panes.rows`."""
        self._panes.add(rows)

    def blocks(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the partials as number 0."""
        yield 0, merge([mapped(self._panes.merged(), (self._windows,))], self._grouping)
