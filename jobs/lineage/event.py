"""Events of OpenLineage, as JSON: the job, its datasets with their columns, and what has become of a run. Pure.

    job event    what the job reads and writes, by its spec alone
    run event    the same, at a moment of a run

What decides which rows there are stands once for each output, in `dataset` of its column lineage.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import Any, Literal

import pyarrow as pa

from jobs.lineage.datasets import DatasetName, of_input, of_output
from jobs.report import redact
from joinlib.expr.types import spelled
from joinlib.model.stage import NamedResult, Pipeline
from joinlib.plan.lineage import Effect, Influence, lineage
from joinlib.sink.changelog import described
from joinlib.spec.model import Spec, StreamJoin

State = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL"]
Json = dict[str, Any]
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
_FACETS = {  # the versions of the facets that are written here
    "ColumnLineageDatasetFacet": "1-2-0",
    "ErrorMessageRunFacet": "1-0-1",
    "JobTypeJobFacet": "2-0-4",
    "ProcessingEngineRunFacet": "1-1-1",
    "SchemaDatasetFacet": "1-2-0",
    "SQLJobFacet": "1-1-0",
}
VERSION = metadata.version("streamjoin")
PRODUCER = f"https://streamjoin.dev/{VERSION}"


@dataclass(frozen=True)
class LineageSubject:
    """What does not change while a job runs: what it is, what it reads and what it writes."""

    job: Json
    inputs: tuple[Json, ...]
    outputs: tuple[Json, ...]
    hidden: redact.Redaction  # what no error may tell


def subject(
    document: StreamJoin, pipeline: Pipeline, namespace: str, environment: Mapping[str, str] = os.environ
) -> LineageSubject:
    """Return what the events of a job have in common.

    Args:
        document: The spec.
        pipeline: Its plan.
        namespace: The namespace of the job.
        environment: Holds the connection strings that the spec names; logins in them are left out.
    """
    spec = document.spec
    hidden = redact.of(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True), environment)
    read = dict.fromkeys(
        [plan.source for plan in pipeline.inputs] + [look.table.source for _, look in pipeline.lookups]
    )
    names = {source: of_input(spec.inputs[source], environment) for source in read}
    inputs = {
        name: _dataset(
            name, {"schema": _schema(spec.inputs[source].arrow_schema)} if _whole(spec, source) else {}
        )
        for source, datasets in names.items()
        for name in datasets
    }
    known = {source: () if not _whole(spec, source) else datasets for source, datasets in names.items()}
    outputs = [_output(spec, pipeline, result, known, environment) for result in pipeline.results]
    facets = {
        "sql": _facet("SQLJobFacet", query=hidden.text(_text(spec)), dialect="spark"),
        "jobType": _facet(
            "JobTypeJobFacet", processingType="STREAMING", integration="STREAMJOIN", jobType="JOB"
        ),
    }
    job = {"namespace": namespace, "name": document.metadata.name, "facets": facets}
    return LineageSubject(job, tuple(inputs.values()), tuple(one for one in outputs if one), hidden)


def job_event(about: LineageSubject, at: datetime) -> Json:
    """Return what the job reads and writes, whether it runs or not."""
    return _event("JobEvent", about, at)


def run_event(
    about: LineageSubject, run: str, state: State, at: datetime, error: Exception | None = None
) -> Json:
    """Return what has become of a run, a UUID, and of what it reads and writes."""
    facets = {"processing_engine": _facet("ProcessingEngineRunFacet", version=VERSION, name="StreamJoin")}
    if error is not None:
        said = about.hidden.error(error)
        facets["errorMessage"] = _facet("ErrorMessageRunFacet", message=said, programmingLanguage="PYTHON")
    return {"eventType": state, "run": {"runId": run, "facets": facets}, **_event("RunEvent", about, at)}


def _event(kind: str, about: LineageSubject, at: datetime) -> Json:
    return {
        "eventTime": at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": f"{_SPEC}/{kind}",
        "job": about.job,
        "inputs": list(about.inputs),
        "outputs": list(about.outputs),
    }


def _facet(kind: str, **content: Any) -> Json:
    url = f"https://openlineage.io/spec/facets/{_FACETS[kind]}/{kind}.json#/$defs/{kind}"
    return {"_producer": PRODUCER, "_schemaURL": url, **content}


def _dataset(name: DatasetName, facets: Json) -> Json:
    return {"namespace": name.namespace, "name": name.name, "facets": facets}


def _schema(schema: pa.Schema) -> Json:
    fields = [{"name": field.name, "type": spelled(field.type)} for field in schema]
    return _facet("SchemaDatasetFacet", fields=fields)


def _whole(spec: Spec, source: str) -> bool:
    """Return whether the columns of an input are those of its dataset, and not what a query makes of tables."""
    table = spec.inputs[source].postgres
    return table is None or table.query is None


def _text(spec: Spec) -> str:
    """Return the SQL as it is written, without values of parameters; several texts under their names."""
    views = [f"-- view {name}\n{text.strip()}" for name, text in spec.views.items()]
    if not spec.outputs:
        return "\n\n".join([*views, spec.sql]) if views else spec.sql
    return "\n\n".join([*views, *(f"-- output {name}\n{o.sql.strip()}" for name, o in spec.outputs.items())])


# --- columns ------------------------------------------------------------------------------------------


def _output(
    spec: Spec,
    pipeline: Pipeline,
    result: NamedResult,
    datasets: Mapping[str, tuple[DatasetName, ...]],
    environment: Mapping[str, str],
) -> Json | None:
    """Return the dataset of a result with its columns, and where they come from; None if it lies nowhere."""
    output = spec.results[result.name]
    name, schema = of_output(output, environment), pipeline.only(result).schema
    if name is None:
        return None
    made = lineage(pipeline, result)
    columns = {column: _fields(made.columns[column], datasets) for column in schema.names}
    traced = _facet(
        "ColumnLineageDatasetFacet",
        fields={column: {"inputFields": found} for column, found in columns.items() if found},
        dataset=_fields(made.rows, datasets),
    )
    enveloped = output.kafka is not None and output.kafka.format == "debezium"
    written = described(schema) if output.adds_columns and not enveloped else schema
    return _dataset(name, {"schema": _schema(written), "columnLineage": traced})


def _fields(influences: Iterable[Influence], datasets: Mapping[str, tuple[DatasetName, ...]]) -> list[Json]:
    """Return columns of datasets, each once with all that it does."""
    found = defaultdict[tuple[DatasetName, str], list[Effect]](list)
    for one in sorted(influences):
        for name in datasets[one.source]:
            found[name, one.column].append(one.effect)
    return [
        {
            "namespace": name.namespace,
            "name": name.name,
            "field": column,
            "transformations": list(_told(effects)),
        }
        for (name, column), effects in found.items()
    ]


def _told(effects: Iterable[Effect]) -> Iterator[Json]:
    for effect in dict.fromkeys(effects):
        kind = "DIRECT" if effect.direct else "INDIRECT"
        yield {"type": kind, "subtype": str(effect)}
