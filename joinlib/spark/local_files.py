"""Hadoop's local files without forks, as a jar in Spark's home.

Without its native library Hadoop forks `chmod` twice for each file it makes: for every offset, every commit and, in each
state partition, every changelog. `LocalFiles.java` makes a system call instead. It is compiled by Janino, the compiler with
which Spark compiles its generated code, so no JDK is needed.
"""

import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).with_name("LocalFiles.java")
_CLASS = "dev.streamjoin.LocalFiles"
_JAR = "streamjoin-local-files.jar"
_MAIN = "org.codehaus.commons.compiler.samples.CompilerDemo"


def add(jars: Path, java: str) -> None:
    """Puts the jar among Spark's. Where it cannot be made there is none: Spark runs without, slower."""
    with tempfile.TemporaryDirectory() as folder:
        compiler, needed = (
            _paths(jars, "janino", "commons-compiler"),
            _paths(jars, "hadoop-client-api", "slf4j-api"),
        )
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
            str(SOURCE),
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        classes = sorted(Path(folder).rglob("*.class"))
        if done.returncode == 0 and classes:
            with zipfile.ZipFile(jars / _JAR, "w") as jar:
                for path in classes:
                    jar.write(path, path.relative_to(folder))


def settings() -> dict[str, str]:
    """Has Spark use it, where its home has it."""
    jar = Path(os.environ.get("SPARK_HOME", "")) / "jars" / _JAR
    return {"spark.hadoop.fs.file.impl": _CLASS} if jar.exists() else {}


def _paths(jars: Path, *names: str) -> str:
    return os.pathsep.join(str(path) for name in names for path in jars.glob(f"{name}-[0-9]*.jar"))
