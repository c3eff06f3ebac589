"""Does a page do what it says? Its blocks are played in order, in an empty folder, as a reader would.

- yaml: a block is kept under the name in its first line (`# orders.yaml`). A StreamJoin is validated and planned; what starts
  at `spec:` is laid over the last StreamJoin of the page, and that is validated and planned. A file of cases is kept.
- sql: a query is planned over the inputs of that StreamJoin; with the first line `-- DuckDB` it runs there.
- bash: commands run until one fails; variables and the folder are kept for the next block.
- python: a script runs; a doctest (`>>>`) runs with the session of the tests as `spark`, and the page's folder as `folder`.
"""

import doctest
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from typer.testing import CliRunner

from jobs.cli.commands import app
from tests.docs.pages import ROOT, Block, Page
from tests.docs.shell import Failed, Shell

LIMIT_S = 240  # for one block
PATHS = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
# Of these an input or output has one.
_REPLACED = ("files", "generator", "kafka", "postgres", "console", "noop")


class Wrong(AssertionError):
    """A block does not do what its page says."""


@dataclass
class Play:
    """A page on its stage. `addresses`: what stands for an address of the page, such as localhost:9092."""

    page: Page
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)  # that a doctest knows
    spec: dict[str, Any] | None = None  # the last StreamJoin
    shell: Shell | None = None

    def run(self, *languages: str) -> None:
        """All blocks of these languages, in order."""
        for shared in ("charts", "manifests"):
            (self.folder / shared).symlink_to(ROOT / shared)
        aside = self.folder.with_name(f"{self.folder.name}.shell")
        with Shell(self.folder, aside, os.environ | PATHS | self.environment) as self.shell:
            for block in self.page.blocks:
                if block.language in languages and block.not_run is None:
                    self._block(block)

    def _block(self, block: Block) -> None:
        try:
            getattr(self, f"_{block.language}")(block, self._here(block.text))
        except Wrong as e:
            raise Wrong(f"{self.page.name}:{block.line}: {e}") from None

    def _here(self, text: str) -> str:
        for there, here in self.addresses.items():
            text = text.replace(there, here)
        return text

    # --- yaml and sql ----------------------------------------------------------------------------------------------

    def _yaml(self, block: Block, text: str) -> None:
        try:
            documents = [document for document in yaml.safe_load_all(text) if document]
        except yaml.YAMLError as e:
            raise Wrong(f"is not valid YAML: {e}") from None
        if block.file:
            (self.folder / block.file).write_text(text)
        for document in documents:
            self._document(document, block)

    def _document(self, document: dict[str, Any], block: Block) -> None:
        if document.get("kind") == "StreamJoin":
            self.spec = document
            self._validate(document)
        elif set(document) == {"spec"}:
            self._validate(merged(self._last(), document))
        elif set(document) == {"cases"}:  # `streamjoin test` says what is wrong with it
            pass
        elif (block.file or "").startswith("values"):
            values_are_known(document)
        elif not {"apiVersion", "kind", "metadata"} <= set(document):
            raise Wrong("is no object of Kubernetes, no values*.yaml, and does not start at `spec:`")

    def _sql(self, block: Block, text: str) -> None:
        if text.startswith("-- DuckDB"):
            found = _duckdb(self.folder, text)
            if not found:
                raise Wrong("DuckDB finds no rows")
        else:
            self._validate(merged(self._last(), {"spec": {"sql": text}}))

    def _last(self) -> dict[str, Any]:
        if self.spec is None:
            raise Wrong("there is no StreamJoin before it")
        return self.spec

    def _validate(self, document: dict[str, Any]) -> None:
        path = self.folder / "checked.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        for command in ("validate", "plan"):
            result = CliRunner().invoke(app, [command, str(path)], env=self.environment)
            if result.exit_code:
                raise Wrong(f"streamjoin {command}: {result.exception or ''}{result.output}")
        path.unlink()

    # --- programs --------------------------------------------------------------------------------------------------

    def _bash(self, block: Block, text: str) -> None:
        assert self.shell is not None
        try:
            printed = self.shell.run(text, LIMIT_S)
        except Failed as e:
            raise Wrong(str(e)) from None
        if block.output is not None and not fits(block.output, printed):
            raise Wrong(f"prints\n{printed}\nand not\n{block.output}")

    def _python(self, block: Block, text: str) -> None:
        if text.startswith(">>>"):
            self._doctest(text)
        else:
            script = self.folder / (block.file or "script.py")
            script.write_text(text)
            if not block.file:
                self._bash(block, f"python {script.name}")

    def _doctest(self, text: str) -> None:
        test = doctest.DocTestParser().get_doctest(text, dict(self.names), self.page.name, None, None)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=said.append)
        if runner.failures:
            raise Wrong("".join(said))


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new` laid over `old`; where it names a source or sink, that stands for the one before."""
    chosen = [name for name in _REPLACED if name in new]
    result = {name: value for name, value in old.items() if not (chosen and name in _REPLACED)}
    for name, value in new.items():
        before = old.get(name)
        both = isinstance(value, dict) and isinstance(before, dict) and name not in _REPLACED
        result[name] = merged(before, value) if both else value
    return result


def fits(expected: str, printed: str) -> bool:
    """The same text but for blanks at ends of lines; "..." stands for anything."""
    wanted, found = ("\n".join(map(str.rstrip, text.strip().splitlines())) for text in (expected, printed))
    return re.fullmatch(".*?".join(map(re.escape, wanted.split("..."))), found, re.DOTALL) is not None


def values_are_known(values: Mapping[str, Any]) -> None:
    """Does the chart have all of them? Raises Wrong."""
    schema = yaml.safe_load((ROOT / "charts" / "streamjoin" / "values.schema.json").read_text())
    _known(values, schema, "")


def _known(values: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> None:
    for name, value in values.items():
        if name not in schema["properties"]:
            raise Wrong(f"the chart has no value {place}{name}")
        child = schema["properties"][name]
        if isinstance(value, dict) and "properties" in child:
            _known(value, child, f"{place}{name}.")


def _duckdb(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return duckdb.connect().sql(sql).fetchall()
