"""Functions of users: planned without being loaded, computed by columns, refused with their name."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.image import of_image
from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.expr.declared import PythonFunction, declared, declaring, loaded
from joinlib.expr.functions import function
from joinlib.expr.nodes import constant
from joinlib.plan import pipeline_of
from joinlib.plan.spec import functions
from joinlib.spec import load, telling_of

MODULE = """
import pyarrow as pa, pyarrow.compute as pc
from joinlib.functions import deterministic

@deterministic
def plus(x, y): return pc.add(x, y)
@deterministic
def chunks(x): return pa.chunked_array([x])
@deterministic
def short(x): return x.slice(1)
@deterministic
def nothing(x): return None
@deterministic
def words(x): return pa.array(["a"] * len(x))
@deterministic
def fails(x): return {}[x[0].as_py()]
def unmarked(x): return x
"""
X = ref("o.x", pa.int64())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scoring.py").write_text(MODULE)
    return tmp_path


def own(folder: Path, name: str) -> PythonFunction:
    return PythonFunction("f", f"scoring:{name}", pa.float64(), str(folder))


def computed(folder: Path, name: str, *more: int) -> list[object]:
    """What a function gives for the rows 1, 2, NULL."""
    arguments = [X, *(constant(pa.scalar(n, pa.int64()), str(n)) for n in more)]
    call = pickle.loads(pickle.dumps(own(folder, name).called(arguments)))
    found: list[object] = call.evaluate(
        {"o.x": pa.array([1, 2, None], pa.int64())}.__getitem__, 3
    ).to_pylist()
    return found


def test_it_gets_columns_and_returns_one(folder: Path) -> None:
    """Constants too are columns; what comes back has the type that was declared."""
    assert computed(folder, "plus", 1) == [2.0, 3.0, None]
    assert computed(folder, "chunks") == [1.0, 2.0, None]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("short", r"function f \(scoring:short\) returned 2 values for 3 rows; return an Arrow array"),
        ("nothing", "returned NoneType; return an Arrow array"),
        ("words", "returned string, which is not what `returns` says"),
        ("fails", r"function f \(scoring:fails\) failed: KeyError; the log has its traceback"),
        ("unmarked", "unmarked is not declared deterministic.*write @deterministic before it"),
        ("gone", r"functions\.f\.python: module scoring has no function gone"),
    ],
)
def test_what_is_no_column_is_refused(folder: Path, name: str, said: str) -> None:
    """With the function's name, and without values."""
    with pytest.raises(SpecError, match=said):
        computed(folder, name)


def test_a_module_that_is_nowhere(tmp_path: Path) -> None:
    """The folder and Python's path are named."""
    with pytest.raises(
        SpecError, match=r"module scoring cannot be imported: ModuleNotFoundError.*looked for in"
    ):
        loaded(own(tmp_path, "plus"))


def test_an_error_while_importing_is_not_a_missing_function(folder: Path) -> None:
    """Whatever it is; the module is tried again when its file was corrected."""
    (folder / "scoring.py").write_text("import math\nmath.nothing")
    with pytest.raises(SpecError, match="module scoring cannot be imported: AttributeError"):
        loaded(own(folder, "plus"))
    (folder / "scoring.py").write_text(MODULE)
    assert callable(loaded(own(folder, "plus")))


def test_a_module_can_find_itself(folder: Path) -> None:
    """Dataclasses look for their module while it is being imported."""
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Rate:\n    x: int\n"
    (folder / "scoring.py").write_text(head + MODULE)
    assert computed(folder, "plus", 1) == [2.0, 3.0, None]


def test_folders_do_not_share_modules(tmp_path: Path) -> None:
    """Although their names differ only in what cannot be in the name of a module."""
    for name, text in (("a.b", MODULE), ("a_b", MODULE.replace("pc.add(x, y)", "pc.subtract(x, y)"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scoring.py").write_text(text)
    assert computed(tmp_path / "a.b", "plus", 1) == [2.0, 3.0, None]
    assert computed(tmp_path / "a_b", "plus", 1) == [0.0, 1.0, None]


def test_no_folder_is_not_the_current_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cluster functions are on Python's path, and nowhere else."""
    monkeypatch.chdir(folder)
    with pytest.raises(SpecError, match=r"ModuleNotFoundError.*looked for on Python's path"):
        loaded(PythonFunction("f", "scoring:plus", pa.float64(), ""))


def test_a_driver_knows_no_folder(folder: Path) -> None:
    """Neither that of its file nor one that the file names."""
    file = folder / "scored.yaml"
    for named in ("", ", path: /data"):
        file.write_text(SPEC.replace("returns: DOUBLE", f"returns: DOUBLE{named}"))
        (function,) = functions(of_image(load(file)).spec).values()
        assert function.folder == ""


def test_names_hold_while_a_query_is_planned(folder: Path) -> None:
    """In any case, and nowhere else; nothing is loaded."""
    given = own(folder / "nowhere", "plus")
    with declaring({"F": given}):
        assert function("f", [X, X]).sql == "f(o.x, o.x)"
        assert function("F", [constant(pa.scalar(1), "1")]).column is None
    assert declared("f") is None
    with pytest.raises(SpecError, match="function f is not supported"):
        function("f", [X])


SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: scored}
spec:
  sql: SELECT o.id, score(o.price, p.rate) AS s FROM orders o JOIN rates p ON o.id = p.id
  functions:
    score: {python: "scoring:plus", returns: DOUBLE}
  inputs:
    orders: {schema: "id BIGINT, price DOUBLE", files: {path: orders}}
    rates: {schema: "id BIGINT, rate DOUBLE", files: {path: rates}}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
"""


def test_a_spec_calls_it(folder: Path) -> None:
    """The module is beside the file; the planner knows its type."""
    file = folder / "scored.yaml"
    file.write_text(SPEC)
    plan = pipeline_of(load(file))
    assert plan.schema.field("s").type == pa.float64()
    assert "score(o.price, p.rate)" in str(plan)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("score:", "upper:", ":7: spec.functions.upper: SQL has a function of this name; give yours another"),
        (
            "scoring:plus",
            "scoring",
            ":7: spec.functions.score.python: 'scoring' does not fit; write MODULE:FUNCTION",
        ),
        ("DOUBLE}", "DUBLE}", ":7: spec.functions.score.returns: column 'value': unknown type 'DUBLE'"),
    ],
)
def test_mistakes_are_told_at_their_line(folder: Path, old: str, new: str, said: str) -> None:
    """Before anything runs."""
    file = folder / "scored.yaml"
    file.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(SpecError) as error, telling_of(file):
        pipeline_of(load(file))
    assert str(error.value).removeprefix(str(file)).startswith(said)


@pytest.mark.parametrize(
    "name",
    [
        "upper",
        "SUM",
        "now",
        "row_number",
        "lag",
        "explode",
        "inline_outer",
        "unnest",
        "transform",
        "reduce",
        "tumble",
        "hop_start",
        "session",
        "cumulate",
        "window",
        "session_window",
        "grouping_id",
        "cast",
        "extract",
        "any",
        "table",
        "in",
    ],
)
def test_names_of_sql_are_refused(folder: Path, name: str) -> None:
    """Whatever kind of function it is: a call would be SQL's own."""
    file = folder / "scored.yaml"
    file.write_text(SPEC.replace("    score:", f'    "{name}":'))
    with pytest.raises(SpecError, match=f"functions.{name}: SQL has a function of this name"):
        pipeline_of(load(file))


def test_names_that_differ_in_case_are_refused(folder: Path) -> None:
    """SQL does not tell them apart."""
    file = folder / "scored.yaml"
    file.write_text(
        SPEC.replace("  inputs:", '    Score: {python: "scoring:short", returns: DOUBLE}\n  inputs:')
    )
    with pytest.raises(SpecError, match=r":8: spec\.functions\.Score: is the same name as 'score' in SQL"):
        load(file)


def test_kernels_of_arrow_are_not_functions_of_users() -> None:
    """Only what its author has declared can be called."""
    with pytest.raises(SpecError, match="not declared deterministic"):
        loaded(PythonFunction("f", f"{pc.add.__module__}:add", pa.int64(), ""))
