"""Traces as a request of OTLP, and its answer, in the messages of OpenTelemetry's own package."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from jobs.traces.settings import VERSION
from jobs.traces.span import BatchTrace, Span, Value

Draw = Callable[[int], int]  # so many random bits
_LONGEST = 200  # characters of what a server says


def encode(resource: Mapping[str, str], traces: Sequence[BatchTrace], draw: Draw) -> bytes:
    """Return the body of a request.

    Args:
        resource: Whose traces they are.
        traces: Batches.
        draw: Gives spans their numbers.
    """
    spans = [span for trace in traces for span in _spans(trace.id.to_bytes(16), trace.root, b"", draw)]
    scope = InstrumentationScope(name="streamjoin", version=VERSION)
    told = trace_pb2.ResourceSpans(
        resource=Resource(attributes=_attributes(resource)),
        scope_spans=[trace_pb2.ScopeSpans(scope=scope, spans=spans)],
    )
    return ExportTraceServiceRequest(resource_spans=[told]).SerializeToString()


def refused(answer: bytes) -> str:
    """Return which spans a server did not take though it answered that all is well; empty: it took all."""
    try:
        found = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:  # nobody has to answer by the book who takes all
        return ""
    if not found.rejected_spans:
        return ""
    return f"{found.rejected_spans} spans: {' '.join(found.error_message.split())[:_LONGEST]}"


def _spans(trace: bytes, span: Span, parent: bytes, draw: Draw) -> Iterator[trace_pb2.Span]:
    """Yield a span and all below it."""
    number = (draw(64) or 1).to_bytes(8)  # 0 is no number
    yield trace_pb2.Span(
        trace_id=trace,
        span_id=number,
        parent_span_id=parent,
        name=span.name,
        kind=trace_pb2.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=round(span.began * 1e9),
        end_time_unix_nano=round(span.ended * 1e9),
        attributes=_attributes(span.attributes),
        status=_status(span),
    )
    for child in span.children:
        yield from _spans(trace, child, number, draw)


def _status(span: Span) -> trace_pb2.Status | None:
    if span.error is None:
        return None
    return trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR, message=span.error)


def _attributes(given: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in given.items()]


def _value(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[_value(one) for one in value]))
