"""What the documents name in the code is there: files, modules, classes and functions."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = {"joinlib": ROOT, "jobs": ROOT, "joinop": ROOT / "operator", "dashboards": ROOT}
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|java|sql|yaml|json|md))(?::(\w+(?:\.\w+)*))?`")
VALUES = yaml.safe_load((ROOT / "charts" / "streamjoin" / "values.yaml").read_text())
NAME = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    """`path/file.py`, `path/file.py:name` and `package.module.Name`."""
    text = page.read_text()
    lost = [found[0] for found in FILE.finditer(text) if not _is_file(page, *found.groups())]
    lost += [found[0] for found in NAME.finditer(text) if not (_is_name(found[1]) or _is_value(found[1]))]
    assert not lost


def test_a_name_that_is_nowhere_is_found() -> None:
    """Modules, their names, and fields of their classes; nothing else."""
    assert _is_name("joinlib.scale.load.tau")
    assert _is_name("joinlib.scale.load.Load.held")
    assert not _is_name("joinlib.scale.load.sigma")
    assert not _is_name("joinlib.scale.nowhere")


def _is_file(page: Path, path: str, name: str | None) -> bool:
    """From the root of the repository, or beside the page."""
    if "NAME" in path:  # a placeholder
        return True
    file = next((f for f in (ROOT / path, page.parent / path) if f.is_file()), None)
    return file is not None and (name is None or _holds(file, name.split(".")))


def _is_name(dotted: str) -> bool:
    package, *parts = dotted.split(".")
    place = PACKAGES[package] / package
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if not parts:
        return (place / "__init__.py").exists()
    if (file := place / f"{parts[0]}.py").exists():
        return len(parts) == 1 or _holds(file, parts[1:])
    return _holds(place / "__init__.py", parts)


def _is_value(dotted: str) -> bool:
    """A value of the chart, some of which begin like a package."""
    found: Any = VALUES
    for part in dotted.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True


def _holds(file: Path, names: list[str]) -> bool:
    """A file of another kind holds whatever its text does."""
    if file.suffix != ".py":
        return re.search(rf"\b{re.escape(names[-1])}\b", file.read_text()) is not None
    return ".".join(names) in _names(file)


@cache
def _names(file: Path) -> set[str]:
    """What a module defines, and what its classes do."""
    return set(_defined(ast.parse(file.read_text()).body, ""))


def _defined(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name
            case ast.ClassDef():
                yield prefix + node.name
                yield from _defined(node.body, f"{prefix}{node.name}.")
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.Assign():
                yield from (prefix + t.id for t in node.targets if isinstance(t, ast.Name))
