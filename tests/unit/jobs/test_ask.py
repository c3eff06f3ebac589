"""Questions that are asked beside a driver: the answer is that of a laptop, and nothing of the job or its driver suffers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from jobs.ask.guard import LEFT, guarded, scarce
from jobs.cli.why import why, whynot
from jobs.image import of_image
from joinlib.deploy import ASK
from joinlib.metric.cgroup import ContainerMemory
from joinlib.registered import load
from tests.laws.document import HEAD
from tests.patience import HUNG_S
from tests.unit.why.lived import ORDERS, PAYMENTS, lived
from tests.unit.why.test_whynot import INNER, order, payment

ROOT = Path(__file__).parents[3]
SLEEP = "import time; time.sleep(600)"


@contextmanager
def process(program: str) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """A process that answers, and both ends of standard input."""
    source, held = os.pipe()
    with subprocess.Popen([sys.executable, "-c", program]) as found:
        try:
            yield found, source, held
        finally:
            found.kill()
            os.close(source)


def plenty() -> ContainerMemory:
    return ContainerMemory(LEFT, 10 * LEFT)


@pytest.mark.parametrize(
    ("program", "code"), [("", 0), ("raise SystemExit(2)", 2), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_code_is_that_of_the_answer(program: str, code: int) -> None:
    """That of a process which was killed is the shells'."""
    with process(program) as (answer, source, held):
        assert guarded(answer, source, plenty) == code
        os.close(held)


def test_it_ends_when_nobody_waits() -> None:
    """What comes by standard input before it ends is nothing to it."""
    with process(SLEEP) as (answer, source, held):
        os.write(held, b"anything")
        os.close(held)
        assert guarded(answer, source, plenty) == 1
        assert answer.wait(HUNG_S) == -9


def test_it_ends_before_memory_is_full(capfd: pytest.CaptureFixture[str]) -> None:
    """And says what to do: the kernel would have killed the driver too."""
    found = iter([plenty(), plenty(), ContainerMemory(10 * LEFT - LEFT // 2, 10 * LEFT)])
    with process(SLEEP) as (answer, source, held):
        assert guarded(answer, source, lambda: next(found)) == 1
        assert answer.wait(HUNG_S) == -9
        os.close(held)
    assert "less than 64 MiB left of its 640 MiB" in (said := capfd.readouterr().err)
    assert "raise driver.memory" in said


@pytest.mark.parametrize(
    ("found", "full"),
    [
        (ContainerMemory(), False),
        (ContainerMemory(5 * LEFT), False),  # no limit
        (ContainerMemory(9 * LEFT, 10 * LEFT), False),
        (ContainerMemory(9 * LEFT + 1, 10 * LEFT), True),
        (ContainerMemory(9 * LEFT + 1, 10 * LEFT, active=LEFT), False),  # files that were read
    ],
)
def test_when_memory_is_full(found: ContainerMemory, full: bool) -> None:
    assert (scarce(found) is not None) == full


# --- as in a pod --------------------------------------------------------------------------------------

OF_IMAGE = """
import pyarrow.compute as pc
from joinlib.functions import deterministic

@deterministic
def twice(x):
    return pc.multiply(x, 2)
"""
OF_VOLUME = "raise RuntimeError('PLANTED')"
SQL = f"{INNER} WHERE twice(o.amount) > 60"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a job that has run, with a function of the image; beside it lies a module of the same name."""
    image, data = tmp_path / "image", tmp_path / "data"
    image.mkdir()
    data.mkdir()
    (image / "scoring_of_image.py").write_text(OF_IMAGE)
    (data / "scoring_of_image.py").write_text(OF_VOLUME)
    monkeypatch.syspath_prepend(str(image))
    monkeypatch.setenv("PYTHONPATH", f"{image}{os.pathsep}{os.environ.get('PYTHONPATH', ROOT)}")
    inputs = {}
    for name, schema, lines in (
        ("orders", ORDERS, [order(1), order(2, amount=30), order(4711)]),
        ("payments", PAYMENTS, [payment(1), payment(2)]),
    ):
        (data / name).mkdir()
        header = ",".join(column.split()[0] for column in schema.split(", "))
        (data / name / "0.csv").write_text("\n".join([header, *lines, ""]))
        inputs[name] = {"schema": schema, "files": {"path": str(data / name), "format": "csv"}}
    written = {
        "sql": SQL,
        "inputs": inputs,
        "functions": {"twice": {"python": "scoring_of_image:twice", "returns": "BIGINT"}},
        "output": {"files": {"path": str(data / "out")}},
        "checkpoint": {"path": str(data / "ck"), "sync": False},
        "join": {"units": 2},
    }
    file = data / "spec.yaml"
    file.write_bytes(orjson.dumps({**HEAD, "spec": written}))
    lived(of_image(load(file)), data)
    return file


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    """As exec runs it: standard input stays open."""
    source, held = os.pipe()
    try:
        return subprocess.run(
            [sys.executable, *ASK[1:], *words],
            stdin=source,
            capture_output=True,
            text=True,
            timeout=HUNG_S,
            check=False,
        )
    finally:
        os.close(source)
        os.close(held)


def test_answers_are_those_of_a_laptop(spec: Path) -> None:
    """With the functions of the image, as the driver has them; nothing of the job is written."""
    before = held_by(spec.parent)
    job = of_image(load(spec))
    for question, expected, condition in (
        ("whynot", whynot, "o.order_id = 2"),
        ("whynot", whynot, "o.order_id = 4711"),
        ("why", why, "order_id = 1"),
    ):
        found = asked(question, str(spec), condition)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout == expected(job, condition) + "\n"
    assert "from payments p: " in found.stdout
    assert held_by(spec.parent) == before


def test_mistakes_are_those_of_a_laptop(spec: Path) -> None:
    """On stderr, with the exit code."""
    found = asked("whynot", str(spec), "o.colour = 'red'; $(touch x)")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("CONDITION: ")
    assert "Traceback" not in found.stderr


def held_by(folder: Path) -> dict[str, bytes]:
    """All files of a folder, and their contents."""
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
