"""A Spark home without Python archives, so that Spark's Python processes start in a third of the time.

Spark puts `python/lib/pyspark.zip` of its home in front of every Python path. The archive holds sources only: each of the
five or six processes of a query would compile them anew, half a second of CPU each. In a home that is PySpark's folder but
for `python/` they import the installed package, which is compiled already.
"""

import hashlib
import os
from pathlib import Path

import pyspark

_ARCHIVES = "python"


def use() -> None:
    """Points SPARK_HOME there, unless the user has chosen one."""
    os.environ.setdefault("SPARK_HOME", str(make(Path(pyspark.__file__).parent)))


def make(package: Path) -> Path:
    """The home of this PySpark, made if it is not there: links, made aside and moved into place."""
    name = hashlib.sha256(f"{pyspark.__version__}:{package}".encode()).hexdigest()[:16]
    home = cache_folder() / "spark" / name
    if not home.exists():
        aside = home.with_name(f".{name}.{os.getpid()}")
        aside.mkdir(parents=True)
        for entry in package.iterdir():
            if entry.name != _ARCHIVES:
                (aside / entry.name).symlink_to(entry)
        try:
            aside.rename(home)
        except OSError:  # another process was first
            for entry in aside.iterdir():
                entry.unlink()
            aside.rmdir()
    return home


def cache_folder() -> Path:
    """Where StreamJoin keeps what it can make anew."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamjoin"
