"""The commands of other systems that join two topics into a third: their jars by Maven, our classes compiled once."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path += [str(ROOT / "bench"), str(ROOT / "bench/peers/flink")]
import flink as flink_peer  # noqa: E402 - of the folder above


def flink(servers: str, folder: Path, checkpoint_ms: int) -> list[str]:
    jars = [*flink_peer.flink_jars(), *_fetched("flink.xml")]
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in flink_peer.OPENED]
    checkpoints = (folder / "checkpoints").as_uri()
    return [
        "java",
        "-Xmx4g",
        *opened,
        "-cp",
        _path("flink", jars),
        "FlinkPipe",
        servers,
        checkpoints,
        str(checkpoint_ms),
    ]


def streams(servers: str, folder: Path, commit_ms: int) -> list[str]:
    path = _path("streams", _fetched("streams.xml"))
    return ["java", "-Xmx4g", "-cp", path, "StreamsPipe", servers, str(folder / "state"), str(commit_ms)]


def _fetched(pom: str) -> list[Path]:
    done = subprocess.run(
        [ROOT / "tests/kafka/fetch", HERE / pom], stdout=subprocess.PIPE, text=True, check=True
    )
    return sorted(Path(done.stdout.split()[-1]).glob("*.jar"))


def _path(name: str, jars: list[Path]) -> str:
    """The class path: our classes, compiled once for each text, and the jars."""
    joined, sources = ":".join(map(str, jars)), sorted((HERE / name).glob("*.java"))
    text = b"".join(source.read_bytes() for source in sources)
    made = flink_peer.CACHE / "bench" / f"{name}-pipe-{sha256(text + joined.encode()).hexdigest()[:12]}"
    if not made.exists():
        subprocess.run(["javac", "-nowarn", "-cp", joined, "-d", str(made), *map(str, sources)], check=True)
    return f"{made}:{joined}"
