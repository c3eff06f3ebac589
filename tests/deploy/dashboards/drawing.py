"""Draws a dashboard with what Prometheus answered, by Grafana's own panels, in a headless Chromium."""

import hashlib
import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.prometheus import CACHE

PAGE = Path(__file__).parent / "page"
WIDTH = 1560
_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # node is one of the development tools
_INSTALLED = ("package.json", "package-lock.json")
_DRAWN = ("page.jsx", "panels.jsx", "frames.js")


@dataclass(frozen=True)
class Drawn:
    """What a panel has become."""

    panel: int
    type: str
    pixels: int  # that are neither grey nor empty, nor outside of the panel; -1: it is not drawn on a canvas
    text: str
    error: str | None


class _Panels(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Drawn] = []
        self.body: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "body":
            self.body = given
        if "data-panel" in given:
            drew, text = given.get("data-drew") or "0", given.get("data-text") or ""
            panel, type = int(given["data-panel"] or 0), given["data-type"] or ""
            self.found.append(Drawn(panel, type, int(drew), text, given.get("data-error")))


def prepare() -> None:
    """What drawing needs and is not here yet: half a minute for each the first time."""
    page()
    needed("chromium", "chromium")


def page() -> Path:
    """The folder of the page, built: once for each version of it, and kept."""
    modules = packages("grafana", PAGE)
    return _kept("page", PAGE, (*_INSTALLED, *_DRAWN), lambda folder: _bundle(modules, folder))


def packages(what: str, source: Path) -> Path:
    """A folder with the npm packages of `source`'s lock: once for each version of it, and kept."""
    return _kept(what, source, _INSTALLED, lambda folder: _install(source, folder))


def _kept(what: str, source: Path, files: tuple[str, ...], make: Any) -> Path:
    digest = hashlib.sha256(b"".join((source / name).read_bytes() for name in files)).hexdigest()[:16]
    folder = CACHE / f"{what}-{digest}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as aside:
            made = Path(aside) / "made"
            made.mkdir()
            make(made)
            if not folder.exists():
                made.rename(folder)
    return folder


def _install(source: Path, folder: Path) -> None:
    """Exactly what the lock says; nothing that is installed may run."""
    for name in _INSTALLED:
        shutil.copy(source / name, folder)
    command = [needed("npm", "npm", "nodejs"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": _PATH},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    if any(code in done.stderr for code in ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN")):
        pytest.skip("npm's packages cannot be reached")
    assert done.returncode == 0, done.stderr[-3000:]


def _bundle(modules: Path, folder: Path) -> None:
    for name in _DRAWN:
        shutil.copy(PAGE / name, folder)
    for name in ("package.json", "node_modules"):
        (folder / name).symlink_to(modules / name)
    command = [needed("npm", "npm", "nodejs"), "run", "-s", "build", "--", f"--outfile={folder / 'page.js'}"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": _PATH},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def needed(name: str, *packages: str) -> str:
    """A program, of Debian's packages if need be; skips where there is no way to get it."""
    if not shutil.which(name, path=_PATH):
        subprocess.run(
            [Path(__file__).parents[3] / "tools" / "apt", *packages],
            check=False,
            capture_output=True,
            timeout=500,
        )
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"there is no {name}, and Debian's packages {', '.join(packages)} cannot be installed")
    return found


def draw(board: dict[str, Any], folder: Path, name: str) -> list[Drawn]:
    """Writes `name`.png and says what each panel drew. `board`: see page.jsx."""
    here = folder / name
    here.mkdir(parents=True)
    for built in ("page.js", "page.css"):
        shutil.copy(page() / built, here)
    shutil.copy(PAGE / "index.html", here)
    (here / "board.js").write_text(f"window.BOARD = {json.dumps(board)};")
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["dashboard"]["panels"]) * 34 + 70
    command = [
        needed("chromium", "chromium"),
        "--headless",
        "--no-sandbox",  # CI is root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        "--force-device-scale-factor=1",
        f"--user-data-dir={here / 'profile'}",
        f"--window-size={WIDTH},{height}",
        "--virtual-time-budget=8000",
        f"--screenshot={folder / name}.png",
        "--dump-dom",
        f"file://{here / 'index.html'}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    panels = _Panels()
    panels.feed(done.stdout)
    assert panels.body.get("data-done") == "yes", done.stderr[-3000:]
    return panels.found
