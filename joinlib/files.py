"""Files that are whole or not there, whoever reads them and whoever else writes them.

    PATH.a1b2c3d4 ─► PATH      written aside, then one rename; whoever has opened the file that was there keeps that one

Attempts of one task may write the same file in two containers, which share neither process ids nor clocks.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path, hidden: bool = False) -> Iterator[Path]:
    """Gives the name to write to; the file takes the place of `path` at the end, unless something is raised.

    That name begins as the file's own: whoever sweeps by how names begin sweeps what was cut off as well. `hidden`: behind a
    dot, so that whoever lists the folder does not take it for a file.
    """
    aside = path.with_name(f"{'.' if hidden else ''}{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
