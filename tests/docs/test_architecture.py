"""The table of packages in architecture.md is that of the code: every package is in it, with what it imports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "joinlib"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .*? \| ([^|]*?) ?\|$", PAGE, re.MULTILINE)
NAMES = [
    (re.findall(r"`(\w+)`", packages), set(re.findall(r"`(\w+)`", imports))) for packages, imports in ROWS
]


def test_every_package_is_in_the_table() -> None:
    """Once."""
    there = {f.stem for f in LIBRARY.glob("*") if f.suffix == ".py" or (f / "__init__.py").exists()} - {
        "__init__"
    }
    listed = [name for packages, _ in NAMES for name in packages]
    assert sorted(listed) == sorted(there)


def test_what_a_package_imports_is_in_its_row() -> None:
    """No more, and no less; what is in the first row is free for all."""
    ground = set(NAMES[0][0])
    for packages, imports in NAMES:
        found = set[str]().union(*(_imports(name) for name in packages)) - ground - set(packages)
        assert found == imports, packages


def test_the_table_goes_up() -> None:
    """A package imports what is above it; the first row knows the spec, to reach a cluster as it says."""
    seen = {*NAMES[0][0], *NAMES[0][1]}
    for packages, imports in NAMES[1:]:
        assert imports <= seen, packages
        seen |= set(packages)


def _imports(name: str) -> set[str]:
    files = [LIBRARY / f"{name}.py"] if (LIBRARY / f"{name}.py").exists() else (LIBRARY / name).rglob("*.py")
    return {package for file in files for package in _of(file)} - {name}


def _of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "joinlib":
            parts = node.module.split(".")[1:2]
            yield from parts or (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("joinlib."))
