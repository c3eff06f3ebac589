"""How much of a core does a period's decision take for 1 000 executors? From Prometheus' answer to the status.

PYTHONPATH=.:operator python bench/decide.py
"""

import statistics
import time
from itertools import pairwise

import orjson
from joinop import measure, remember
from joinop.names import Key

from joinlib.scale import Observed, Policy, State, step

EXECUTORS, SCRAPES, ROUNDS = 1000, 8, 20


def answer(at: float) -> bytes:
    """As Prometheus says it: every series with eight scrapes."""
    target = {"instance": "10.0.0.1:8080", "job": "drivers", "namespace": "shop", "streamjoin": "orders"}

    def series(name: str, value: float, **labels: str) -> object:
        values = [[at - 15 * back, str(value)] for back in reversed(range(SCRAPES))]
        return {"metric": {"__name__": name, **target, **labels}, "values": values}

    found = [
        series(name, 9e8, executor=str(e))
        for name in ("streamjoin_executor_state_bytes", "streamjoin_executor_capacity_bytes")
        for e in range(EXECUTORS)
    ]
    found += [series("streamjoin_executors", EXECUTORS, state="ready"), series("streamjoin_partitions", 1024)]
    found += [series(f"streamjoin_{n}", 1, input="a") for n in ("lag_rows", "input_rate")]
    return orjson.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


def main() -> None:
    policy, state, parts = Policy(min=1, max=2000), State(wanted=EXECUTORS), []
    body = answer(time.time())
    for number in range(ROUNDS):
        times = [time.thread_time()]
        said = orjson.loads(body)
        times.append(time.thread_time())
        load = measure.load(measure.of_prometheus(said))
        assert not isinstance(load, str), load
        times.append(time.thread_time())
        state = step(state, policy, Observed(EXECUTORS, 0, load), 60.0 * number)
        times.append(time.thread_time())
        remember.read({"scaling": remember.written(state)})
        times.append(time.thread_time())
        parts.append([1000 * (b - a) for a, b in pairwise(times)])
    names = ("JSON", "loads of the samples", "decision", "status, there and back")
    for name, column in zip(names, zip(*parts, strict=True), strict=True):
        print(f"{name:24} {statistics.median(column):6.2f} ms")
    print(f"{Key('shop', 'orders')}: {EXECUTORS} executors, {len(body) / 1e6:.1f} MB from Prometheus")


if __name__ == "__main__":
    main()
