"""StreamJoin's Java classes, as a jar in Spark's home. No JDK is needed: Spark ships a compiler, Janino.

Gather            the last column of a few rows, taken to the driver
Heaps             how full the heaps of the driver and of its executors are, and how long they were collected
LocalFiles        Hadoop's local file system, durable and without forks. Hadoop never syncs, its rename replaces
                  the target, and without its native library it forks `chmod` twice for each file
Located           partitions are computed on the executors that have their units' indexes
NotReadyYet       an error that Spark logs at every start on Kubernetes is left out of the driver's log
PatientAllocator  executors' pods that the API server refuses end no driver, and it knows why they are refused
WarmExecutor      an executor takes tasks once it is warm
Workers           of the Python workers that wait, the last one to end a task takes the next; those that did what is
                  done once end
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from joinlib.errors import SpecError

SOURCES = sorted((Path(__file__).parents[1] / "java").glob("*.java"))
_JAR = "streamjoin.jar"
PACKAGE = "dev.streamjoin"
_EXTENSIONS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
ALLOCATOR = "spark.kubernetes.allocation.pods.allocator"
_MAIN = "org.codehaus.commons.compiler.samples.CompilerDemo"


def add(jars: Path, java: str) -> None:
    """Add the jar to Spark's.

    Where it cannot be made there is none: Spark runs without it, slower, and syncs nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        compiler, needed = _paths(jars, "janino-", "commons-compiler-"), _paths(jars, "")
        command = [
            java,
            "-XX:TieredStopAtLevel=1",
            "-cp",
            compiler,
            _MAIN,
            "-d",
            folder,
            "-classpath",
            needed,
        ]
        done = subprocess.run([*command, *map(str, SOURCES)], capture_output=True, check=False)
        classes = sorted(Path(folder).rglob("*.class"))
        if done.returncode == 0 and classes:
            with zipfile.ZipFile(jars / _JAR, "w") as jar:
                for path in classes:
                    jar.write(path, path.relative_to(folder))


def trimmed(source: Path, target: Path) -> bool:
    """Copy a jar without what slows the start of every JVM; returns whether there was any, else nothing is copied.

    Signatures: a class archive takes no classes of a signed jar. Extensions of all sessions: MLlib has one, whose two
    functions take a quarter of a session's start to register.
    """
    if source.suffix != ".jar":
        return False
    with zipfile.ZipFile(source) as old:
        entries = old.infolist()
        if not any(_slows(e.filename) for e in entries):
            return False
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in entries:
                if not _slows(entry.filename):
                    new.writestr(entry, old.read(entry))
    return True


def _slows(name: str) -> bool:
    return name == _EXTENSIONS or bool(re.fullmatch(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)", name))


def there() -> bool:
    """Return whether Spark's home has the jar."""
    return (Path(os.environ.get("SPARK_HOME", "")) / "jars" / _JAR).exists()


@lru_cache(maxsize=8)
def known(jvm: Any, name: str) -> Any:
    """Return one of the classes, which must be there.

    Kept, since to find out that `dev` is no class the JVM asks all jars of Spark, which takes 5 ms.
    """
    return getattr(jvm.dev.streamjoin, name)


def settings() -> dict[str, str]:
    """Return the settings that make Spark use LocalFiles, if its home has the jar."""
    return {"spark.hadoop.fs.file.impl": f"{PACKAGE}.LocalFiles"} if there() else {}


def syncing(synced: bool) -> dict[str, str]:
    """Return the settings that make Spark's logs durable, or not.

    Raises:
        SpecError: `synced` is asked for and Spark's home has no jar.
    """
    if synced and not there():
        raise SpecError(
            f"checkpoint.sync: {os.environ.get('SPARK_HOME')}/jars has no {_JAR}, without which Spark does"
            " not sync its logs: unset SPARK_HOME, so that StreamJoin makes a home of its own, or set"
            " `checkpoint.sync: false` if results may be lost with the machine"
        )
    return {"spark.hadoop.streamjoin.sync": str(synced).lower()}


def warming() -> dict[str, str]:
    """Return the settings with which executors take tasks only once they are warm, and tell of their heaps.

    They are for sessions with executors of their own.
    """
    if not there():
        return {}
    return {
        "spark.plugins": f"{PACKAGE}.WarmExecutor,{PACKAGE}.Heaps",
        "spark.streamjoin.python": sys.executable,
        "spark.streamjoin.hashSeed": os.environ.get("PYTHONHASHSEED", "0"),
    }


def patience() -> dict[str, str]:
    """Return the settings with which a driver goes on while the API server refuses executors' pods."""
    return {ALLOCATOR: f"{PACKAGE}.PatientAllocator"} if there() else {}


def _paths(jars: Path, *names: str) -> str:
    return os.pathsep.join(str(path) for name in names for path in sorted(jars.glob(f"{name}*.jar")))
