"""How fast do topics become routed blocks, beside a bare consumer of the same messages in the same minutes?

    PYTHONPATH=. .venv/bin/python bench/kafka/run.py [--messages 1000000] [--backlog 10000000] [--repetitions 3]

Every figure comes from a process of its own: `bare` takes messages from confluent-kafka and looks at each
value; `columns` takes them by our own client, their values, keys, times and offsets in arrays; `blocks` does all
that a map task does (decode, prepare, hash, split) but for Spark. One task each, so one Python thread and the
client's own threads. `command` is `streamjoin run --until-done`: two inputs of the topic, joined, on all cores, results
made and dropped, start-up and all. `backlog` reads a long topic batch after batch and says what memory that takes.
"""

import argparse
import json
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from joinlib.compiled import Compiled, compiled
from joinlib.route.split import prepare, split
from joinlib.source import admit, make, reader
from joinlib.source.kafka.client import MOST, Client
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.consumer import consumer_settings
from joinlib.spec import parse
from tests.kafka.broker import Broker, running

ROOT = Path(__file__).parents[2]
SCHEMA = "order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP"
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: bench}}
spec:
  sql: SELECT a.order_id, a.customer, a.amount, b.ordered_at FROM a JOIN b ON a.order_id = b.order_id
  inputs:
    a: &topic
      schema: {schema}
      kafka: {{bootstrapServers: "{servers}", topic: {topic}, format: {format}}}
    b: *topic
  output: {{noop: {{}}}}
  checkpoint: {{path: checkpoint}}
"""
ARROW_ROWS = 10_000  # of a message
PARTITIONS = 2


# --- what is measured: each prints one line of JSON ---------------------------------------------------------


def bare(servers: str, topic: str, format: str) -> dict[str, float]:
    """Messages a second of the client alone, with the settings that our reader gives it."""
    config = _plan(servers, topic, format).source.sources[0].config
    assert isinstance(config, KafkaConfig)
    consumer = Consumer(consumer_settings(config.spec))
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, 0, ends[0])])
    consumer.consume(1, 0.5)  # warm: connection
    count = size = 0
    started = time.perf_counter()
    for partition, end in ends.items():
        consumer.assign([TopicPartition(topic, partition, 0)])
        at = 0
        while at < end:
            found = [m for m in consumer.consume(min(10_000, end - at), 1.0) if m.error() is None]
            size += sum(len(m.value()) for m in found)
            at += len(found)
        count += at
    return {"messages": count, "bytes": size, "seconds": time.perf_counter() - started}


def columns(servers: str, topic: str, format: str) -> dict[str, float]:
    """The same by our own client."""
    config = _plan(servers, topic, format).source.sources[0].config
    assert isinstance(config, KafkaConfig)
    client = Client(consumer_settings(config.spec), print)
    ends = {p: client.reach((topic, p), 10)[1] for p in range(PARTITIONS)}
    client.assign({(topic, 0): ends[0]})
    client.fetched(1, 0.5, False)  # warm: kernels, connection
    count = size = 0
    started = time.perf_counter()
    for partition, end in ends.items():
        client.assign({(topic, partition): 0})
        at = 0
        while at < end:
            for found in client.fetched(min(MOST, end - at), 1.0, False):
                if found.messages is not None:
                    size += int(found.messages.values.sizes.sum())
                    at += len(found.messages)
        count += at
    return {"messages": count, "bytes": size, "seconds": time.perf_counter() - started}


def blocks(servers: str, topic: str, format: str, batch_rows: int = 1_000_000) -> dict[str, float]:
    """Rows a second from the topic to blocks that are split by unit, in batches as the driver admits them."""
    plan = _plan(servers, topic, format)
    source, stage = plan.source.sources[0], plan.pipeline.last
    with tempfile.TemporaryDirectory() as logs:
        topics = make(source.name, source.config, source.schema, Path(logs))
        known = {source.name: topics.discover()}
        at = {source.name: 0}
        rows = batches = 0
        _routed(stage.inputs[0], source, topics.slices(0, 1), stage.units)  # warm: kernels, connection
        started = time.perf_counter()
        while at != known:
            after = admit(
                known,
                at,
                lambda _, a, b: topics.slices(a, b),
                batch_rows,
                {},
                {source.name: source.max_bytes},
            )
            slices = topics.slices(at[source.name], after[source.name])
            rows += _routed(stage.inputs[0], source, slices, stage.units)
            at, batches = after, batches + 1
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": rows, "seconds": seconds, "batches": batches, "peak_mb": peak}


def command(servers: str, topic: str, format: str) -> dict[str, float]:
    """Rows a second of both inputs."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "bench.yaml"
        spec.write_text(SPEC.format(schema=SCHEMA, servers=servers, topic=topic, format=format))
        run = [Path(sys.executable).with_name("streamjoin"), "run", spec, "--until-done"]
        started = time.perf_counter()
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
    found = re.search(r"([\d,]+) rows read", done.stdout + done.stderr)
    assert found, done.stdout + done.stderr
    return {"rows": int(found[1].replace(",", "")), "seconds": seconds}


def _routed(plan: Any, source: Any, slices: Any, units: int) -> int:
    rows = 0
    for sequence, batch in enumerate(reader(source.config, source.schema).read_many(slices, plan.read)):
        for _, part in split(prepare(plan, batch, sequence), units):
            rows += part.num_rows
            part.serialize()
    return rows


def _plan(servers: str, topic: str, format: str) -> Compiled:
    text = SPEC.format(schema=SCHEMA, servers=servers, topic=topic, format=format)
    return compiled(parse(text, "bench.yaml", Path.cwd()), 1)


MEASURES: dict[str, Callable[..., dict[str, float]]] = {"bare": bare, "columns": columns, "blocks": blocks}


# --- topics -------------------------------------------------------------------------------------------------


def _json(start: int, stop: int) -> Iterator[bytes]:
    for i in range(start, stop):
        yield (
            b'{"order_id":%d,"customer":"customer-%d","amount":%d.25,"ordered_at":"2026-03-%02dT%02d:%02d:%02d.%06dZ"}'
            % (
                i * 7919 % 1_000_003,
                i % 9973,
                i % 500,
                i // 86_400 % 28 + 1,
                i // 3600 % 24,
                i // 60 % 60,
                i % 60,
                i % 1_000_000,
            )
        )


def _arrow(start: int, stop: int) -> Iterator[bytes]:
    for first in range(start, stop, ARROW_ROWS):
        numbers = range(first, min(first + ARROW_ROWS, stop))
        batch = pa.record_batch(
            {
                "order_id": pa.array([i * 7919 % 1_000_003 for i in numbers], pa.int64()),
                "customer": [f"customer-{i % 9973}" for i in numbers],
                "amount": [i % 500 + 0.25 for i in numbers],
                "ordered_at": pa.array([i * 1000 for i in numbers], pa.timestamp("us", "UTC")),
            }
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield sink.getvalue().to_pybytes()


VALUES: dict[str, Callable[[int, int], Iterator[bytes]]] = {"json": _json, "arrow": _arrow}


def fill(broker: Broker, topic: str, format: str, count: int) -> str:
    """A topic of so many rows."""
    broker.topic(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 50, "batch.size": 1 << 20})
    each = count // PARTITIONS
    for partition in range(PARTITIONS):
        for value in VALUES[format](partition * each, (partition + 1) * each):
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.05)
    assert producer.flush(120) == 0
    return topic


# --- the run ------------------------------------------------------------------------------------------------


def measured(what: str, broker: Broker, topic: str, format: str) -> dict[str, float]:
    """One measure, in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, broker.servers, topic, format]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def table(results: dict[str, list[float]], memory: dict[str, float] | None) -> str:
    """For readers."""
    lines = ["| what | a second: median (min to max) |", "|---|---|"]
    for what, rates in results.items():
        shown = f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        lines.append(f"| {what} | {shown} |")
    ratio = median(results["json: rows to routed blocks"]) / median(results["json: bare consumer"])
    lines += ["", f"Of the bare consumer's messages, {ratio:.0%} become routed rows in the same time."]
    if memory:
        lines.append(
            f"A backlog of {memory['rows']:,.0f} messages: {memory['batches']:.0f} batches,"
            f" {memory['rows'] / memory['seconds']:,.0f} rows/s, at most {memory['peak_mb']:.0f} MB."
        )
    return "\n".join(lines)


def main() -> None:
    """Fills topics, measures in turn, prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--backlog", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--measure", nargs=4, metavar=("WHAT", "SERVERS", "TOPIC", "FORMAT"))
    asked = parser.parse_args()
    if asked.measure:
        what, *rest = asked.measure
        print(json.dumps(MEASURES[what](*rest)))
        return
    results: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "broker") as broker:
        fill(broker, "json", "json", asked.messages)
        fill(broker, "arrow", "arrow", 10 * asked.messages)
        for _ in range(asked.repetitions):
            for format in ("json", "arrow"):
                for measure, shown in (("bare", "bare consumer"), ("columns", "our client, in columns")):
                    found = measured(measure, broker, format, format)
                    rate = found["messages"] / found["seconds"]
                    results.setdefault(f"{format}: {shown}", []).append(rate)
                found = measured("blocks", broker, format, format)
                rate = found["rows"] / found["seconds"]
                results.setdefault(f"{format}: rows to routed blocks", []).append(rate)
        memory = None
        if asked.backlog:
            fill(broker, "backlog", "json", asked.backlog)
            memory = measured("blocks", broker, "backlog", "json")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}\n")
    print(table(results, memory))


if __name__ == "__main__":
    main()
