"""Does the runner find a page that is wrong? Each way in which a page can be, and what is said of it."""

from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import RUN
from tests.docs.play import Play, Wrong, fits, merged

SPEC = """\
```yaml
# job.yaml
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: pairs}
spec:
  sql: SELECT l.id FROM l JOIN r ON l.id = r.id
  inputs:
    l: {schema: id BIGINT, files: {path: l}}
    r: {schema: id BIGINT, files: {path: r}}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
```
"""


def play(text: str, folder: Path) -> None:
    Play(pages.parse("page.md", text), folder / "page").run(*RUN)


def fenced(language: str, *lines: str) -> str:
    return "\n".join([f"\n```{language}", *lines, "```\n"])


@pytest.fixture(autouse=True)
def _stage(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()


def test_a_page_that_is_right(tmp_path: Path) -> None:
    """Files, variables, folders and jobs in the background live on; a block that is left out is."""
    play(
        SPEC
        + fenced("yaml", "spec:", "  output: {console: {}}")
        + fenced("sql", "SELECT l.id AS other FROM l JOIN r ON l.id = r.id")
        + fenced("bash", "streamjoin validate job.yaml")
        + fenced("text", "job.yaml: valid")
        + fenced("bash", "NAME=x; mkdir below; cd below; sleep 60 &")
        + fenced("bash", 'kill %1; echo "$NAME" "${PWD##*/}"')
        + fenced("text", "x b...w")
        + fenced("bash", "cd ..; echo '1' > one.csv")
        + fenced("sql", "-- DuckDB", "SELECT * FROM read_csv('one.csv', header = false)")
        + fenced("python", ">>> 1 + 1", "2")
        + "<!-- not run: it would end the machine -->"
        + fenced("bash", "exit 1"),
        tmp_path,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fenced("bash", "true", "false", "true"), "page.md:2: ends with exit code 1"),
        (fenced("bash", "echo a") + fenced("text", "b"), "prints\na"),
        (fenced("yaml", "a: [1"), "is not valid YAML"),
        (fenced("yaml", "a: 1"), "does not start at `spec:`"),
        (fenced("yaml", "spec: {join: {units: 8}}"), "there is no StreamJoin before it"),
        (fenced("sql", "SELECT 1"), "there is no StreamJoin before it"),
        (SPEC + fenced("yaml", "spec: {join: {units: 7}}"), "7 is not a power of two"),
        (SPEC + fenced("yaml", "spec: {jion: {units: 8}}"), "did you mean 'join'?"),
        (SPEC + fenced("sql", "SELECT l.no FROM l JOIN r ON l.id = r.id"), "no column no"),
        (fenced("yaml", "# values.yaml", "jobs: {alow: {}}"), "the chart has no value jobs.alow"),
        (fenced("python", "1 / 0"), "ZeroDivisionError"),
        (fenced("python", ">>> 1 + 1", "3"), "Expected:\n    3"),
        (fenced("sql", "-- DuckDB", "SELECT 1 WHERE false"), "finds no rows"),
    ],
)
def test_a_page_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong is said, with page and line."""
    with pytest.raises(Wrong) as wrong:
        play(text, tmp_path)
    assert str(wrong.value).startswith("page.md:")
    assert message in str(wrong.value)


def test_what_nobody_runs_is_found() -> None:
    """A language or a server that the runner does not know."""
    page = pages.parse("page.md", "<!-- needs: kafka, oracle -->\n" + fenced("sh", "true"))
    assert pages.problems(page) == [
        "page.md:3: a block of 'sh'; write one of bash, yaml, sql, python, text",
        "page.md: needs oracle; there is only kafka, registry, postgres, cluster",
    ]


def test_what_fits() -> None:
    """Dots stand for anything, blanks at ends of lines for nothing."""
    assert fits("a\n...\nz\n", "a  \nb\nc\nz")
    assert fits("x...", "x")
    assert not fits("a", "ab")
    assert not fits("a...z", "a\nb")


def test_a_part_is_laid_over_a_spec() -> None:
    """Maps go into one another; a source or sink replaces the one before."""
    old = {"spec": {"join": {"units": 8}, "output": {"mode": "append", "files": {"path": "a"}}}}
    new = {"spec": {"join": {"retention": "1h"}, "output": {"console": {}}}}
    assert merged(old, new) == {
        "spec": {"join": {"units": 8, "retention": "1h"}, "output": {"mode": "append", "console": {}}}
    }
