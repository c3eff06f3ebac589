"""How fast do result rows get into a topic, beside a bare producer in the same minutes; and what does a
transaction cost?

    PYTHONPATH=. .venv/bin/python bench/kafka/sink.py [--rows 500000] [--repetitions 3]

`bare` is confluent-kafka's producer, idempotent, with messages that were made before. Our rates begin with
Arrow columns: text, keys, transaction and its marker are in them. Overhead: a batch of 1 000 rows over so
many units, in one transaction of the task (what StreamJoin does), or in one of each unit; less the same rows
without transactions.
"""

import argparse
import json
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.messages import messages
from joinlib.sink.kafka.sink import KafkaSink
from joinlib.worker import current
from tests.configs import results
from tests.kafka.broker import Broker, running

FRAME_ROWS = 100_000
UNITS = (1, 8, 64)
BATCHES, BATCH_ROWS = 12, 1_024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "broker") as broker:
        broker.topic("bench", 4)
        frames = made(given.rows)
        _warm(broker)
        runs: dict[str, Callable[[], float]] = {
            "bare, JSON made before": lambda: bare(broker, frames),
            "json": lambda: ours(broker, frames, "json"),
            "json, keyed": lambda: ours(broker, frames, "json", key=("k",)),
            "csv": lambda: ours(broker, frames, "csv"),
            "avro": lambda: ours(broker, frames, "avro", registry={"url": "http://nobody.asks"}),
            "arrow": lambda: ours(broker, frames, "arrow"),
        }
        rates: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(given.repetitions):
            for name, run in runs.items():
                rates[name].append(given.rows / run())
        for name, found in rates.items():
            print(
                json.dumps(
                    {"what": name, "rows_per_s": round(median(found)), "all": [round(r) for r in found]}
                )
            )
        for units in UNITS:
            print(json.dumps({"units": units, **overhead(broker, units)}))


def made(rows: int) -> list[pa.RecordBatch]:
    """Frames of two numbers, a string of 14 letters, a time and a double."""
    draw = np.random.default_rng(0)
    words = np.array(["apeapeapeapeap", "beebeebeebeebe", 'quo"tequo"tequ'])
    batch = pa.record_batch(
        {
            "k": draw.integers(0, 1 << 40, rows),
            "v": draw.integers(0, 1 << 20, rows),
            "s": pa.array(words[draw.integers(0, 50, rows) // 24]),
            "at": pa.array(draw.integers(10**15, 2 * 10**15, rows)).cast(pa.timestamp("us", "UTC")),
            "x": draw.random(rows),
        }
    )
    return [batch.slice(start, FRAME_ROWS) for start in range(0, rows, FRAME_ROWS)]


def bare(broker: Broker, frames: list[pa.RecordBatch]) -> float:
    """Seconds of `produce` for each message, and the flush."""
    values = [v for frame in frames for v in _values(frame, _target(broker, "json"))]
    producer = Producer(
        {
            "bootstrap.servers": broker.servers,
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 100_000,
        }
    )
    producer.list_topics("bench", timeout=10)
    started = time.perf_counter()
    _produced(producer, values)
    return time.perf_counter() - started


def ours(broker: Broker, frames: list[pa.RecordBatch], format: Any, **more: Any) -> float:
    """Seconds of one batch of one task, over a channel that is open, as it is from the second batch on."""
    target = _target(broker, format, **more)
    _batch(target, 0, frames[:1])
    started = time.perf_counter()
    _batch(target, 1, frames)
    return time.perf_counter() - started


def overhead(broker: Broker, units: int) -> dict[str, float]:
    """Milliseconds a batch, median: of the task, of the units, and of a task whose partition was another
    process's before.
    """
    (frame,) = made(BATCH_ROWS)
    parts = [frame.slice(at * BATCH_ROWS // units, BATCH_ROWS // units) for at in range(units)]
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 20})

    def plain(_: int) -> None:
        for part in parts:
            _produced(producer, _values(part, target), flush=False)
        producer.flush()

    def of_units(batch: int) -> None:
        for partition, part in enumerate(parts):
            box = KafkaSink(target, partition, batch)
            box.write(part)
            box.close()

    def anew(batch: int) -> None:
        current().close()
        _batch(target, batch, parts)

    current().producers.most = 2 * max(UNITS)
    target = _target(broker, "json")
    without = _median(plain)
    task = _median(lambda batch: _batch(target, batch, parts))
    target = _target(broker, "json")
    fresh = _median(anew)
    target = _target(broker, "json")
    each = _median(of_units)
    current().close()
    return {
        "without": round(without, 1),
        "of_the_task": round(task - without, 1),
        "of_the_task_anew": round(fresh - without, 1),
        "of_each_unit": round(each - without, 1),
    }


def _median(run: Callable[[int], None]) -> float:
    took = []
    for batch in range(BATCHES):
        started = time.perf_counter()
        run(batch)
        took.append((time.perf_counter() - started) * 1e3)
    return median(took[2:])


def _batch(target: KafkaSinkConfig, batch: int, frames: list[pa.RecordBatch]) -> None:
    box = KafkaSink(target, 0, batch)
    for frame in frames:
        box.write(frame)
    box.close()


def _values(frame: pa.RecordBatch, target: KafkaSinkConfig) -> list[bytes | None]:
    return [value for part in messages(frame, target) for value in part.values]


def _produced(producer: Producer, values: list[bytes | None], *, flush: bool = True) -> None:
    for value in values:
        while True:
            try:
                producer.produce("bench", value)
                break
            except BufferError:
                producer.poll(0.05)
    if flush:
        assert producer.flush(120) == 0


def _target(broker: Broker, format: Any, **more: Any) -> KafkaSinkConfig:
    target = results(broker.servers, "bench", job=uuid.uuid4().hex, format=format, **more)
    return replace(target, schema_id=1)


def _warm(broker: Broker) -> None:
    """The broker's own topics for transactions and groups, and its code."""
    for batch in range(3):
        _batch(_target(broker, "json"), batch, made(20_000))


if __name__ == "__main__":
    main()
