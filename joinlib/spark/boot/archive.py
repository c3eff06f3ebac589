"""A class archive for Spark's JVM: the classes of a first batch, loaded and verified once for all runs.

    python -m joinlib.spark.train      makes it, in about half a minute

With it Spark starts some seconds faster. The installation makes it, or else the first run does, in the
background after it ends. It is a cache: where it is missing or does not fit, the JVM starts without it and
says nothing (its name holds what it depends on: Java, PySpark and their folders). Where it cannot be made, a
mark beside it, NAME.failed, keeps runs from trying again; the installation does try again.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from joinlib.spark.boot import home

MAKER = "joinlib.spark.train"  # the module that makes the archive


def options() -> list[str]:
    """Return the JVM options that use the archive, if there is one."""
    path = archive()
    return (
        [f"-XX:SharedArchiveFile={path}", *_MAPPED, "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        if path.exists()
        else []
    )


# At the address that it was made for. By default it is moved, which writes all of its pages: 125 MB that are no file's.
_MAPPED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")


def archive() -> Path:
    """Return the path of the archive of this Java and this PySpark."""
    home.use()  # a class archive fits one class path only
    program = Path(home.java()).resolve()
    release = program.parent.parent / "release"
    known = [os.environ.get("SPARK_HOME", ""), str(program), release.read_text() if release.exists() else ""]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    return home.cache_folder() / "classes" / f"{name}.jsa"


def make_later() -> None:
    """Start making the archive if it is missing and has not failed before.

    It is made by a process of lowest priority that outlives this one.
    """
    path = archive()
    if not path.exists() and not path.with_suffix(".failed").exists():
        command = ["nice", "-n", "19", sys.executable, "-m", MAKER]
        none = subprocess.DEVNULL
        subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True)
