"""How Sphinx makes a site of the project's Markdown, which a forge shows as it is.

The source folder is the repository, so links between README, charts, manifests and docs are the same on both.
The contents in the margin are the links of docs/index.md, section by section.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "StreamJoin"
author = "the StreamJoin authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "charts/streamjoin/README.md",
    "charts/streamjoin/runbooks/*.md",
    "operator/joinop/README.md",
    "bench/**.md",
]
exclude_patterns = [".*", "build", "tests"]
nitpicky = True  # a link to nothing is a warning, and `make docs` makes every warning an error
myst_heading_anchors = 4  # page.md#heading, as on a forge
myst_enable_extensions = ["strikethrough"]
suppress_warnings = [
    "toc.not_included",  # tests/docs/test_site.py says which pages are in the contents
    "myst.header",  # tables that a benchmark has written begin with a heading of the second level
]
html_theme = "furo"
html_title = "StreamJoin"
html_show_sourcelink = False
html_copy_source = False

_SECTION = re.compile(r"^## ", re.MULTILINE)
_FOLDER = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<path>[\w./-]+)\)")
_LINK = re.compile(r"\]\((?P<page>[^)#:]+)\.md\)")


def _contents(index: str) -> Iterator[str]:
    """A hidden table of contents for each section of the index that has links to pages."""
    for section in _SECTION.split(index)[1:]:
        caption, _, text = section.partition("\n")
        pages = dict.fromkeys(link["page"] for link in _LINK.finditer(text))
        if pages:
            yield "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", *pages, "```"])


def _prepare(app: "Sphinx", page: str, source: list[str]) -> None:
    """The index gets its contents.

    A link to a folder, which a forge shows, leads to its README or is text.
    """
    if page == app.config.root_doc:
        source[0] += "\n".join(_contents(source[0])) + "\n"
    here = (Path(app.srcdir) / page).parent
    source[0] = _FOLDER.sub(lambda link: _shown(here, link), source[0])


def _shown(here: Path, link: re.Match[str]) -> str:
    folder = here / link["path"]
    if not folder.is_dir():
        return link[0]
    return (
        f"[{link['text']}]({link['path'].rstrip('/')}/README.md)"
        if (folder / "README.md").exists()
        else link["text"]
    )


def _add_front(app: "Sphinx", failure: Exception | None) -> None:
    """The site opens at its top, wherever its first page lies."""
    if failure is None:
        refresh = f'<meta http-equiv="refresh" content="0; url={app.config.root_doc}.html">\n'
        (Path(app.outdir) / "index.html").write_text(refresh)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _prepare)
    app.connect("build-finished", _add_front)
    return {"parallel_read_safe": True}
