"""The tables that the rows of a stage are enriched with, in one unit and batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from joinlib.engine.task import JoinTask
from joinlib.lookup.enrich import Finder, finder
from joinlib.lookup.used import Used
from joinlib.model.joins import Lookup

Finders = Sequence[tuple[Lookup, Finder]]


def finders(task: JoinTask, versions: Mapping[int, int], folder: Path) -> Finders:
    """Return what finds rows of each table of the task's stage.

    versions: of the tables, by the number of the lookup. folder: of the unit's indexes.
    """
    units, bits = task.stage.units, task.tuning.hash_bits
    return [(t.lookup, finder(t, versions, folder, units, bits)) for t in task.looked_up]


def figures_of(found: Finders) -> tuple[Used, ...]:
    """Return the figures of the lookups so far."""
    return tuple([replace(finder.used(), table=lookup.table.alias) for lookup, finder in found])
