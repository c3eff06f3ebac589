"""A Spark home with our jar and no Python archives: Spark's Python processes start in a third of the time.

Spark puts `python/lib/pyspark.zip` of its home in front of every Python path. The archive holds sources only:
each of the five or six processes of a query would compile them again, for half a second of CPU each. In a
home that is PySpark's folder without `python/`, they import the installed package, which is compiled already.
"""

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

from joinlib.spark.boot import jar

_ARCHIVES, _JARS = "python", "jars"


def use() -> None:
    """Point SPARK_HOME to this home, unless the user has chosen one."""
    os.environ.setdefault("SPARK_HOME", str(make(Path(pyspark.__file__).parent)))


def make(package: Path) -> Path:
    """Return the home of this PySpark.

    Makes it if it does not exist: links, written aside and moved into place.
    """
    made_by = (Path(__file__), Path(jar.__file__), *jar.SOURCES)
    known = [pyspark.__version__, str(package), *(source.read_text() for source in made_by)]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    home = cache_folder() / "spark" / name
    if not home.exists():
        aside = home.with_name(f".{name}.{os.getpid()}")
        (aside / _JARS).mkdir(parents=True)
        for entry in package.iterdir():
            if entry.name not in {_ARCHIVES, _JARS}:
                (aside / entry.name).symlink_to(entry)
        for file in (package / _JARS).iterdir():
            if not jar.trimmed(file, aside / _JARS / file.name):
                (aside / _JARS / file.name).symlink_to(file)
        jar.add(aside / _JARS, java())
        try:
            aside.rename(home)
        except OSError:  # another process was first
            shutil.rmtree(aside)
    return home


def java() -> str:
    """Return the Java program that Spark will start."""
    own = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(own) / "bin" / "java") if own else "java") or "java"


def cache_folder() -> Path:
    """Return the folder of StreamJoin's caches: all in it can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamjoin"
