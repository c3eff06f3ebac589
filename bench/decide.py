"""How much of a core does a period's decision take for 1 000 executors? From the figures' text to the status.

PYTHONPATH=.:operator python bench/decide.py

Prometheus adds up: its answer is as long for one executor as for a thousand. Without one the driver's own
/metrics are read.
"""

import statistics
import time
from itertools import pairwise

import orjson
from joinop import load_metrics, persist

from joinlib.scale import Observed, State, step
from tests import configs

EXECUTORS, ROUNDS = 1000, 20
SUMS = {"ready": EXECUTORS, "reported": EXECUTORS, "known": EXECUTORS, "held": 9e11, "capacity": 2e12}
SUMS |= {"lag": 0, "rate": 1e6, "partitions": 1024}
EACH = (
    "state_bytes",
    "capacity_bytes",
    "state_rows",
    "units",
    "memory_load",
    "working_set_bytes",
    "memory_limit_bytes",
)


def answered(at: float) -> bytes:
    """As Prometheus says it."""
    target = {"instance": "10.0.0.1:8080", "job": "drivers", "namespace": "shop", "streamjoin": "orders"}
    found = [
        {"metric": {**target, "figure": name}, "value": [at, str(value)]}
        for name, value in {"at": at, **SUMS}.items()
    ]
    return orjson.dumps({"status": "success", "data": {"resultType": "vector", "result": found}})


def exposed() -> bytes:
    """As the driver says it, with all that it says of executors."""
    lines = [f'streamjoin_executor_{name}{{executor="{e}"}} 9e+08' for name in EACH for e in range(EXECUTORS)]
    lines += [f'streamjoin_executors{{state="ready"}} {EXECUTORS}', "streamjoin_partitions 1024"]
    lines += [f'streamjoin_{name}{{input="a"}} 1' for name in ("lag_rows", "input_rate")]
    return "\n".join([*lines, ""]).encode()


def main() -> None:
    policy, state, parts = configs.policy(min=1, max=2000), State(wanted=EXECUTORS), []
    answer, text = answered(time.time()), exposed()
    for number in range(ROUNDS):
        times = [time.thread_time()]
        load = load_metrics.load(load_metrics.from_prometheus(orjson.loads(answer)))
        times.append(time.thread_time())
        state = step(
            state, policy, Observed(EXECUTORS, 0, None if isinstance(load, str) else load), 60.0 * number
        )
        times.append(time.thread_time())
        persist.from_status({"scaling": persist.to_status(state)})
        times.append(time.thread_time())
        said = load_metrics.load(load_metrics.from_text(text.decode()))
        times.append(time.thread_time())
        assert not isinstance(load, str), load
        assert not isinstance(said, str), said
        parts.append([1000 * (b - a) for a, b in pairwise(times)])
    names = ("Prometheus' answer", "decision", "status, there and back", "or: the driver's answer")
    for name, column in zip(names, zip(*parts, strict=True), strict=True):
        print(f"{name:24} {statistics.median(column):6.2f} ms")
    print(
        f"{EXECUTORS} executors; {len(answer) / 1e3:.1f} kB from Prometheus, {len(text) / 1e3:.0f} kB from"
        " the driver"
    )


if __name__ == "__main__":
    main()
