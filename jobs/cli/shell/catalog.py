"""What can be queried: the inputs and views of a spec, with those that were added at the prompt."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from joinlib.checkpoint.planned import plan_of
from joinlib.errors import SpecError
from joinlib.expr.types import name as type_name
from joinlib.plan import Pipeline
from joinlib.spec.base import Problem
from joinlib.spec.inputs import Input
from joinlib.spec.load import problems
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint
from joinlib.spec.output import Output, OutputFiles

_NOTHING = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "prompt"},
}


def of_inputs(inputs: Mapping[str, Any]) -> StreamJoin:
    """Return a job over these inputs, as a spec has them.

    Raises:
        SpecError: One cannot be used.
    """
    spec = {
        "sql": "SELECT 1",
        "inputs": dict(inputs),
        "output": {"noop": {}},
        "checkpoint": {"path": "/unused"},
    }
    try:
        return StreamJoin.model_validate({**_NOTHING, "spec": spec}, by_alias=True, by_name=False)
    except ValidationError as error:
        said = (Problem(p.at[1:], p.message) for p in problems(error, StreamJoin))  # all are of the spec
        raise SpecError("\n".join(f"{'.'.join(map(str, p.at))}: {p.message}" for p in said)) from error


def _untouched(given: Input) -> Input:
    """The input, read without leaving anything: its files stay, and no bad message is written."""
    update: dict[str, Any] = {"on_error": "fail", "on_late": "drop"}
    if given.files is not None:
        update["files"] = given.files.model_copy(update={"done": "keep", "archive": None})
    if given.kafka is not None and given.kafka.dead_letters is not None:
        update["kafka"] = given.kafka.model_copy(update={"on_bad_message": "skip", "dead_letters": None})
    return given.model_copy(update=update)


@dataclass(frozen=True)
class Catalog:
    """Inputs and views; `folder` takes what queries keep while they run.

    Law: a query changes nothing outside of that folder, whatever the spec says of its inputs.
    """

    document: StreamJoin
    folder: Path
    views: Mapping[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def planned(self, sql: str) -> tuple[StreamJoin, Pipeline]:
        """Return the job that runs a query, and its plan: with results that may change, else with final ones.

        Raises:
            SpecError: The query cannot be run.
        """
        try:
            return self._planned(sql, "changelog")
        except SpecError:
            try:
                return self._planned(sql, "append")
            except SpecError:
                pass
            raise

    def _planned(self, sql: str, mode: Literal["append", "changelog"]) -> tuple[StreamJoin, Pipeline]:
        own = self.folder / f"query{next(self._numbers)}"
        spec = self.document.spec
        update = {
            "sql": sql,
            "inputs": {name: _untouched(given) for name, given in spec.inputs.items()},
            "views": {**spec.views, **self.views},
            "output": Output(mode=mode, files=OutputFiles(path=own / "out")),
            "checkpoint": spec.checkpoint.model_copy(
                update={"path": own / "checkpoint", "reset": None, "sync": False}
            ),
            "batch": spec.batch.model_copy(update={"interval_us": 0}),
            "executors": None,
        }
        document = self.document.model_copy(update={"spec": spec.model_copy(update=update)})
        return document, plan_of(document)

    def to_run(self, sql: str) -> StreamJoin:
        """Return the job that runs a query.

        Raises:
            SpecError: The query cannot be run, or reads an input that would keep something of the prompt.
        """
        document, plan = self.planned(sql)
        for name in dict.fromkeys(given.source for given in plan.inputs):
            postgres = document.spec.inputs[name].postgres
            if postgres is not None and postgres.changes is not None:
                raise SpecError(
                    f"inputs.{name}.postgres.changes: the prompt makes no replication slot, which would keep the"
                    " database's log; run the query as a job, or write the input without changes"
                )
        return document

    def columns(self) -> dict[str, list[str]]:
        """Return the columns of each input, for completion."""
        found = {name: list(given.arrow_schema.names) for name, given in self.document.spec.inputs.items()}
        return found | {name: [] for name in (*self.document.spec.views, *self.views)}

    def described(self, table: str) -> list[tuple[str, str]]:
        """Return names and types of a table's columns.

        Raises:
            SpecError: There is no such input or view.
        """
        folded = {name.lower(): name for name in self.columns()}
        if table.lower() not in folded:
            raise SpecError(
                f"there is no input or view {table}; {hint(table, list(folded.values()), 'there is')}"
            )
        name = folded[table.lower()]
        if name in self.document.spec.inputs:
            schema = self.document.spec.inputs[name].arrow_schema
        else:
            schema = self.planned(f"SELECT * FROM {name}")[1].schema
        return [(column.name, type_name(column.type)) for column in schema]

    def with_view(self, name: str, sql: str) -> "Catalog":
        """Return the catalog with one more view, or another one of that name.

        Raises:
            SpecError: An input has this name, or the view cannot be run.
        """
        if name.lower() in (known.lower() for known in self.document.spec.inputs):
            raise SpecError(f"{name} is an input; give the view another name")
        more = replace(self, views={**self.views, name: sql})
        more.planned(f"SELECT * FROM {name}")
        return more

    def without_view(self, name: str) -> "Catalog":
        """Return the catalog without a view that was made at the prompt.

        Raises:
            SpecError: There is none.
        """
        if name not in self.views:
            raise SpecError(f"there is no view {name} of this prompt; {hint(name, self.views, 'there is')}")
        return replace(self, views={known: sql for known, sql in self.views.items() if known != name})
