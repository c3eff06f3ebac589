"""Decides which version of each table the next batch sees. It runs in the driver, where batches are planned.

    current()  the first call loads the tables and waits; later calls take what was loaded in the meantime
    ensure()   makes sure that the versions which a logged batch has seen exist undamaged, as it runs again
    retire()   deletes versions that no batch needs any more

Law: a batch sees one complete version of a table, in every unit and each time it is run. A reload that fails,
or finds the table empty, changes nothing, and is logged.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from joinlib import fault
from joinlib.errors import StreamJoinError
from joinlib.lookup.digests import damage
from joinlib.lookup.load import loaded
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import write_parts
from joinlib.postgres.connection import patient

log = logging.getLogger("joinlib.lookup")


@dataclass(frozen=True)
class Loads:
    """The outcome of loading a table.

    `at`: the end of the last load that succeeded, in seconds since 1970.
    """

    version: int = 0
    seconds: float = 0.0
    at: float = 0.0
    kept: int = 0  # loads that kept the previous version, since they failed or found no rows


class Versions:
    """The versions of the tables that are kept whole. One thread uses it; loads run in another."""

    def __init__(
        self,
        tasks: Sequence[TableTask],
        hash_bits: int = 64,
        synced: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`synced`: flush versions to disk, so that they survive a power cut.

        `clock`: seconds, for refreshes.
        """
        self._tasks = {t.alias: t for t in tasks if t.full and t.reader is not None}
        self._arguments = tasks, hash_bits, synced
        self._synced = synced
        self._sound: set[Path] = set()  # versions that this process has written, or found undamaged
        self._hash_bits, self._clock = hash_bits, clock
        self._now: dict[str, int] = {}
        self._loaded: dict[str, float] = {}  # when the last attempt began
        self._loading: dict[str, Future[int]] = {}
        self._loads: dict[str, Loads] = dict.fromkeys(self._tasks, Loads())
        self._pool = ThreadPoolExecutor(1, "tables")  # one at a time, over one connection

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the tables without what was loaded, for another process."""
        return Versions, self._arguments

    def current(self) -> dict[str, int]:
        """Return the newest version of each table, by its alias in the SQL; wait for the first one."""
        for alias, task in self._tasks.items():
            if alias not in self._now:
                self._begin(alias)
                self._now[alias] = self._loading.pop(alias).result()
            elif alias in self._loading:
                self._take(alias)
            elif self._due(alias, task):
                self._begin(alias)
        return dict(self._now)

    def completed(self, begun: Mapping[str, int]) -> dict[str, int]:
        """Return the versions that a batch was begun with, and current ones of tables that were asked for their rows then.

        A table of a database may have become smaller than its budget since the run that began the batch.
        """
        return dict(begun) if self._tasks.keys() <= begun.keys() else {**self.current(), **begun}

    def loads(self) -> dict[str, dict[str, Any]]:
        """How the loads of each table went, as plain values."""
        return {alias: asdict(loads) for alias, loads in self._loads.items() if loads.version}

    def ensure(self, wanted: Mapping[str, int]) -> None:
        """Make sure that each of these versions exists.

        One that was lost or damaged is loaded again, so a lookup may then see a newer table.
        """
        for alias, number in wanted.items():
            if alias in self._tasks and not self._whole(folder := self._tasks[alias].version(number)):
                log.warning("table %s: version %d was lost or is damaged; it is loaded again", alias, number)
                shutil.rmtree(folder, ignore_errors=True)
                self._pool.submit(self._load, self._tasks[alias], number).result()

    def _whole(self, folder: Path) -> bool:
        """Whether the version exists undamaged. Checksums are verified once in a process."""
        if folder not in self._sound and damage(folder) is None:
            self._sound.add(folder)
        return folder in self._sound and folder.exists()

    def retire(self, alive: Mapping[str, int]) -> None:
        """Delete all versions older than these."""
        for alias, number in alive.items():
            for old in self._folders(alias):
                if int(old.name) < number:
                    shutil.rmtree(old, ignore_errors=True)

    def _folders(self, alias: str) -> list[Path]:
        return (
            [f for f in self._tasks[alias].folder.glob("*") if f.name.isdigit()]
            if alias in self._tasks
            else []
        )

    def _due(self, alias: str, task: TableTask) -> bool:
        refresh = task.lookup.caching.refresh_us
        return refresh is not None and self._clock() - self._loaded[alias] >= refresh / 1e6

    def _begin(self, alias: str) -> None:
        self._loaded[alias] = self._clock()
        number = max((int(f.name) for f in self._folders(alias)), default=0) + 1
        for cut_off in self._tasks[alias].folder.glob(".*"):  # a driver died during a load
            shutil.rmtree(cut_off, ignore_errors=True)
        self._loading[alias] = self._pool.submit(self._load, self._tasks[alias], number)

    def _take(self, alias: str) -> None:
        if not self._loading[alias].done():
            return
        try:
            self._now[alias] = self._loading.pop(alias).result()
        except StreamJoinError as error:
            self._keeps(alias)
            log.warning("%s; the previous version is kept", error)

    def _keeps(self, alias: str) -> None:
        self._loads[alias] = replace(self._loads[alias], kept=self._loads[alias].kept + 1)

    def _load(self, task: TableTask, number: int) -> int:
        """Load the table as version `number` and return the version to use:
        an older one if the table is empty.
        """

        def attempt() -> int:
            began = time.monotonic()
            before, aside = self._now.get(task.alias), task.folder / f".{number}.{uuid.uuid4().hex[:8]}"
            with loaded(task, aside, self._hash_bits) as found:
                if not found.rows:
                    name = f"inputs.{task.lookup.table.source}"
                    log.warning(
                        "%s: the table is empty%s", name, "; the previous version is kept" if before else ""
                    )
                    if before is not None:
                        self._keeps(task.alias)
                        return before
                fault.point("loaded", number)
                write_parts(
                    task.version(number), found.parts, task.lookup.range, self._synced, whole=found.whole
                )
            self._sound.add(task.version(number))
            kept = self._loads[task.alias].kept
            self._loads[task.alias] = Loads(number, time.monotonic() - began, time.time(), kept)
            return number

        return patient(task.reader.config, attempt) if isinstance(task.reader, PostgresTable) else attempt()
