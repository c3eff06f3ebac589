"""The page of a run: what it is told, who is told, and what a real browser shows of it."""

import http.client
import json
import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.cli.page import serving
from jobs.driver.serve import Answers, application
from jobs.page.answer import answer, subject
from jobs.page.notes import Notes
from jobs.page.rows import LastRows, latest
from jobs.page.serve import html
from jobs.server import HttpServer
from joinlib.checkpoint.planned import plan_of
from joinlib.direct.report import Report, Sample
from joinlib.errors import SpecError
from joinlib.spec import load
from tests.deploy.dashboards.drawing import needed
from tests.patience import HUNG_S
from tests.unit.jobs.test_commands import MANIFESTS
from tests.unit.jobs.test_view import RUNNING

PIPELINE = plan_of(load(next(m for m in MANIFESTS if m.name.startswith("02"))))
EVIL = "<img src=x onerror=\"document.body.dataset.hurt='yes'\">"
TOKEN = "s3cret/token"
_CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]


def told(job: str = "late", **news: Any) -> dict[str, Any]:
    notes = Notes()
    notes.say("Running")
    notes.say(f"1 -> 3 executors are wanted: τ 1.77 is over 0.8 {EVIL}")
    notes.emit(logging.makeLogRecord({"levelname": "WARNING", "msg": f"batch 3 {EVIL}"}))
    about = replace(subject(job, PIPELINE), units=4)
    return answer(about, replace(RUNNING, **news), notes.latest(), 2.0)


def test_what_the_page_is_told() -> None:
    """The drawing of the plan, the status, figures of each input and unit, the newest note first; JSON, and no rows."""
    said = json.loads(json.dumps(told()))
    assert set(said) == {"job", "plan", "status", "inputs", "units", "last", "notes"}
    assert said["last"] == []
    assert "⋈" in said["plan"]
    assert (said["status"]["phase"], said["status"]["batch"]) == ("Running", 8)
    assert (said["inputs"]["orders"]["rate"], said["inputs"]["orders"]["lag"]) == (20.0, 3)
    assert [unit["stateRows"] for unit in said["units"]] == [30, 30]
    assert [note["level"] for note in said["notes"]] == ["warning", "info", "info"]


def report(batch: int, rows: pa.Table, of: int) -> Report:
    return Report(batch, (), {"": Sample(rows, of)})


def test_the_last_rows() -> None:
    """As text, cut; of the last batch that had some; only where a spec asks for them."""
    table = pa.table(
        {"k": [1, None, 3], "t": ["x" * 999, EVIL, None], "at": pa.array([1, 2**62, 3], pa.timestamp("us"))}
    )
    assert latest({}, report(4, table, 9), 0) == {}
    found = latest({}, report(4, table, 9), 2)
    assert latest(found, report(5, table.slice(0, 0), 0), 2) == found
    (said,) = json.loads(json.dumps(told(last=found)))["last"]
    (first, second) = said.pop("rows")
    assert said == {"output": "", "batch": 4, "of": 9, "columns": ["k", "t", "at"]}
    assert (first[0], len(first[1]), first[2]) == ("1", 200, "1970-01-01 00:00:00.000001")
    assert second == [None, EVIL, "a timestamp[us] that cannot be shown"]
    assert len(latest(found, report(6, table, 3), 5)[""].rows) == 3


def test_notes_are_bounded() -> None:
    """The latest are kept, and none is endless."""
    notes = Notes()
    for number in range(99):
        notes.say(f"{number} {'x' * 9999}")
    assert len(notes.latest()) == 50
    assert notes.latest()[0].text.startswith("98 ")
    assert max(len(note.text) for note in notes.latest()) == 500


@contextmanager
def driver(page: Callable[[], dict[str, Any]], *, open_to_all: bool) -> Iterator[int]:
    """What a driver serves; the port."""
    answers = Answers(dict, bytes, lambda: True, lambda: True, lambda _: None, lambda: TOKEN, page)
    server = HttpServer(application(answers, open_to_all=open_to_all), 0)
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def get(port: int, path: str, **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HUNG_S)
    connection.request("GET", path, headers=headers)
    found = connection.getresponse()
    text = found.read().decode()
    connection.close()
    return found.status, text, found.headers


def test_the_token_guards_figures() -> None:
    """As it guards the status; the page itself is the same file for every job."""
    with driver(told, open_to_all=False) as port:
        assert get(port, "/v1/page")[0] == get(port, "/v1/status")[0] == 401
        assert get(port, "/v1/page", Authorization="Bearer wrong")[0] == 401
        assert json.loads(get(port, "/v1/page", Authorization=f"Bearer {TOKEN}")[1])["job"] == "late"
        assert get(port, "/")[:2] == (200, html())
    with driver(told, open_to_all=True) as port:
        assert get(port, "/v1/page")[0] == get(port, "/v1/status")[0] == 200


def test_the_page_may_load_nothing() -> None:
    """Its policy names its own script and style by their hashes, and nothing of elsewhere; the file names no host."""
    with driver(told, open_to_all=True) as port:
        policy = get(port, "/")[2]["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy
    assert set(re.findall(r"https?://[^\s\"'<]+", html())) == {
        "http://www.w3.org/2000/svg"
    }  # a name, never asked
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\son\w+=", html())


def test_a_run_tells_this_machine_only() -> None:
    """It listens at 127.0.0.1, and a name that a foreign page leads there is refused; a port in use is named."""
    with serving(0, "late", PIPELINE, lambda: RUNNING) as address:
        port = int(address.rpartition(":")[2])
        assert get(port, "/v1/page")[0] == get(port, "/v1/status")[0] == 200
        assert (
            get(port, "/v1/page", Host="evil.example")[0]
            == get(port, "/v1/status", Host="evil.example")[0]
            == 403
        )
        with (
            pytest.raises(SpecError, match=f"--page {port}: "),
            serving(port, "b", PIPELINE, lambda: RUNNING),
        ):
            pass


def browse(address: str, folder: Path, *more: str) -> tuple[str, str]:
    """The document that a real Chromium has made of it, and what its console says."""
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [
        needed("chromium", "chromium"),
        *_CHROMIUM,
        profile,
        "--enable-logging=stderr",
        "--window-size=1280,1500",
    ]
    command += ["--virtual-time-budget=5000", *more, "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.slow
def test_a_browser_shows_it(tmp_path: Path) -> None:
    """Figures, drawings and plan; a hostile name is text; the policy is kept. $STREAMJOIN_PICTURES keeps the picture."""
    pictures = Path(os.environ.get("STREAMJOIN_PICTURES", tmp_path))
    last = {"": LastRows(7, 12, ("k", "note"), (("4711", f"row {EVIL}"), ("4712", None)))}
    with driver(lambda: told(f"late {EVIL}", last=last), open_to_all=False) as port:
        shown, console = browse(
            f"http://127.0.0.1:{port}/#{TOKEN}", tmp_path, f"--screenshot={pictures / 'page.png'}"
        )
        empty, _ = browse(f"http://127.0.0.1:{port}/", tmp_path)
    assert console == ""
    assert "data-hurt" not in shown
    assert "late &lt;img src=x" in shown
    assert "batch 3 &lt;img src=x" in shown
    assert "1 -&gt; 3 executors are wanted: τ 1.77 is over 0.8 &lt;img src=x" in shown
    assert "Last rows: 2 of 12 of batch 7" in shown
    assert all(word in shown for word in ("4711", "row &lt;img src=x", "NULL"))
    assert TOKEN not in shown
    assert all(
        word in shown for word in ("⋈", "orders", "payments", "<polyline", "<rect", "fullest has 30 rows")
    )
    assert (pictures / "page.png").stat().st_size > 20_000

    assert "this job's figures need its token" in empty.lower()
    assert "⋈" not in empty
