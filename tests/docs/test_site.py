"""The site is built without a warning, and not at all where a link leads nowhere."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import ROOT


def built(source: Path, into: Path) -> tuple[int, str]:
    """The exit code and the words of the command that `make docs` runs."""
    arguments = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(ROOT / "docs"), str(source), str(into)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_site_is_built(tmp_path: Path) -> None:
    """Every page of docs is in it and in its contents."""
    code, said = built(ROOT, tmp_path)
    assert code == 0, said
    index = (tmp_path / "docs" / "index.html").read_text()
    for name in pages.names():
        assert (tmp_path / name).with_suffix(".html").exists()
        if name.startswith("docs/") and name != "docs/index.md" and "/decisions/" not in name:
            assert f'href="{name.removeprefix("docs/").removesuffix(".md")}.html"' in index, (
                f"{name} is not in docs/index.md"
            )


@pytest.mark.parametrize(
    ("link", "code"), [("there.md", 0), ("there.md#one", 0), ("no.md", 1), ("there.md#no", 1)]
)
def test_a_broken_link_ends_the_build(tmp_path: Path, link: str, code: int) -> None:
    """To a page, and to a heading."""
    docs = tmp_path / "source" / "docs"
    docs.mkdir(parents=True)
    (docs / "there.md").write_text("# There\n\n## One\n")
    (docs / "index.md").write_text(f"# Index\n\n## Pages\n\n[link]({link}) [all](there.md)\n")
    found, said = built(tmp_path / "source", tmp_path / "site")
    assert found == code, said
    assert code == 0 or link.partition("#")[2] in said
    shutil.rmtree(tmp_path)
