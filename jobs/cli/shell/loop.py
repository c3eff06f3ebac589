"""The prompt: statements in, results out. A statement that fails says why, and the prompt goes on."""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from jobs.cli.shell import query, statements
from jobs.cli.shell.catalog import Catalog
from jobs.cli.shell.complete import words
from jobs.cli.shell.statements import Statement
from jobs.terminal import lines
from joinlib.errors import SqlError, StreamJoinError

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent
    from pyspark.sql import SparkSession
    from rich.console import Console

HELP = """\
SELECT ...;                reads what is there now, and shows the result while it grows
WATCH SELECT ...;          goes on when more rows come; Ctrl-C ends it
EXPLAIN SELECT ...;        how it would be run, and what would be kept for how long
CREATE VIEW v AS SELECT ...;  DROP VIEW v;
SHOW TABLES   DESCRIBE t   HELP   EXIT (or Ctrl-D)"""


class Prompt:
    """Runs statements one after the other over a catalog.

    Args:
        catalog: What can be queried.
        console: Where results go.
        spark: Gives the session, which is started for the first query.
        log: The file with Spark's output.
    """

    def __init__(
        self, catalog: Catalog, console: "Console", spark: "Callable[[], SparkSession]", log: Path
    ) -> None:
        self.catalog, self._console, self._spark, self._log = catalog, console, spark, log
        self.failed = False  # any statement

    def run(self, texts: Iterable[str]) -> None:
        """Run statements until one says EXIT; a mistake is told, and the next is run."""
        for text in texts:
            statement = statements.read(text)
            if statement.verb == "exit":
                return
            try:
                getattr(self, f"_{statement.verb}")(statement)
            except StreamJoinError as error:
                self._refused(told(error, statement.text))
            except Exception as error:  # noqa: BLE001 - one statement must not end the prompt
                traceback.print_exc()  # into the log
                self._refused(f"{type(error).__name__}: {error}; the traceback is in {self._log}")

    def _refused(self, why: str) -> None:
        self.failed = True
        self._console.print(lines(why), style="red", highlight=False, markup=False)

    def _query(self, statement: Statement, live: bool = False) -> None:
        query.run(self.catalog.to_run(statement.text), self._console, self._spark, self._log, live=live)

    def _watch(self, statement: Statement) -> None:
        self._query(statement, live=True)

    def _explain(self, statement: Statement) -> None:
        from joinlib.plan.explain.formats import render

        text = render(self.catalog.planned(statement.text)[1], "text")
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _view(self, statement: Statement) -> None:
        self.catalog = self.catalog.with_view(statement.name, statement.text)

    def _drop(self, statement: Statement) -> None:
        self.catalog = self.catalog.without_view(statement.name)

    def _show(self, _: Statement) -> None:
        spec = self.catalog.document.spec
        for name, given in spec.inputs.items():
            kind = "stream" if given.is_stream else "table"
            self._console.print(f"{name:24} {kind}", highlight=False)
        for name in (*spec.views, *self.catalog.views):
            self._console.print(f"{name:24} view", highlight=False)

    def _describe(self, statement: Statement) -> None:
        for name, kind in self.catalog.described(statement.name):
            self._console.print(f"{name:24} {kind}", highlight=False, markup=False)

    def _help(self, _: Statement) -> None:
        self._console.print(HELP, highlight=False, markup=False)


def told(error: StreamJoinError, sql: str) -> str:
    """Return the mistakes, each below the line of the SQL where it is."""
    if not isinstance(error, SqlError) or not error.line or error.view:
        return str(error)
    lines = sql.split("\n")
    return "\n".join(
        f"{lines[one.line - 1]}\n{' ' * (one.column - 1)}^\n{one.message}" for one in (error, *error.more)
    )


def piped(source: TextIO) -> Iterator[str]:
    """Yield the statements of a text; the last one needs no semicolon."""
    found, rest = statements.cut(source.read())
    yield from (*found, *([rest] if rest.strip() else []))


def typed(prompt: Prompt, terminal: TextIO, history: Path) -> Iterator[str]:
    """Yield the statements that are typed at the terminal, until Ctrl-D."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.lexers import PygmentsLexer
    from prompt_toolkit.output import create_output
    from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: "KeyPressEvent") -> None:
        """End the statement, or else the line."""
        buffer = event.current_buffer
        if statements.complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    private(history)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)),
        lexer=PygmentsLexer(SqlLexer),
        completer=_completer(prompt),
        complete_while_typing=True,
        multiline=True,
        key_bindings=keys,
        prompt_continuation="       ... ",
        output=create_output(stdout=terminal),
    )
    while True:
        try:
            text = session.prompt("streamjoin> ")
        except KeyboardInterrupt:  # what was typed is thrown away
            continue
        except EOFError:
            return
        found, rest = statements.cut(text)
        yield from (*found, *([rest] if rest.strip() else []))


def private(file: Path) -> None:
    """Make a file that nobody else may read: what is typed may hold data."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.chmod(0o600)  # it may be older


def _completer(prompt: Prompt) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class Words(Completer):
        """Completes tables, columns, functions and keywords."""

        def get_completions(
            self, document: "Document", complete_event: "CompleteEvent"
        ) -> "Iterator[Completion]":
            begun, found = words(document.text_before_cursor, prompt.catalog.columns())
            for word in found:
                yield Completion(word, start_position=-len(begun))

    return Words()


def interactive() -> bool:
    """Whether somebody types."""
    return sys.stdin.isatty()
