"""The shape of the code: one name for each class, functions that fit on a screen, and Spark in one package."""

import ast
import pkgutil
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("joinlib", "jobs", "operator/joinop")
PACKAGES = ("joinlib", "jobs", "joinop")
LONGEST = 60  # lines of a function
# Processes are started there, some before anything of Spark can be imported.
WITHOUT_SPARK = ("joinlib/spark/__init__.py", "joinlib/spark/boot/")
IMPORT = re.compile(r"\bfrom ((?:joinlib|jobs|joinop)[.\w]*) import (\w[\w, ]*)")


def sources() -> Iterator[Path]:
    """The product's own Python files."""
    for folder in PRODUCT:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_a_class_name_is_defined_once() -> None:
    """One word, one meaning."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_function_needs_scrolling() -> None:
    """Long functions hide what they do."""
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > LONGEST
    ]
    assert long == []


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    count = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        count -= (first.end_lineno or 0) - first.lineno + 1
    return count


def test_what_lies_in_the_spark_package_is_about_spark() -> None:
    """What never imports pyspark, or a module that does, belongs to another package."""
    strange = [
        name
        for path in sorted((ROOT / "joinlib" / "spark").rglob("*.py"))
        if not (name := str(path.relative_to(ROOT))).startswith(WITHOUT_SPARK)
        and not any(mark in path.read_text() for mark in ("pyspark", "py4j", "joinlib.spark"))
    ]
    assert strange == []


def test_what_is_imported_exists() -> None:
    """In programs within strings, documents and benches as well, which neither mypy nor a test of theirs may read."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = [ROOT / name for name in listed.stdout.split("\0") if name.endswith((".py", ".md", ".in", ".sh"))]
    wanted = {
        (module, name.split()[0])
        for text in texts
        if text.is_file()
        for module, names in IMPORT.findall(text.read_text(encoding="utf-8"))
        for name in names.split(",")
        if name.strip()
    }
    assert [(module, name) for module, name in sorted(wanted) if not _exists(module, name)] == []


def test_what_a_test_replaces_exists() -> None:
    """A name moved in the product is found here, not an hour later in the one slow test that replaces it."""
    missing = [
        f"{path.relative_to(ROOT)}:{call.lineno} {owner}.{name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for call, owner, name in _replaced(ast.parse(path.read_text()))
        if not _exists(owner, name)
    ]
    assert missing == []


def _replaced(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls of `setattr(OWNER, "NAME", ...)` whose owner, a module or a class, the file imports at its top."""
    owners = {
        name.asname or name.name: f"{node.module}.{name.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGES)
        for name in node.names
    }
    for call in ast.walk(tree):
        match call:
            case ast.Call(ast.Attribute(attr="setattr"), [ast.Name(owner), ast.Constant(str(name)), _]) if (
                owner in owners
            ):
                yield call, owners[owner], name


def _exists(owner: str, name: str) -> bool:
    """Whether a module or a class has something of this name."""
    try:
        pkgutil.resolve_name(f"{owner}.{name}")
    except (ImportError, AttributeError):
        return False
    return True
