"""The figures that a driver exports at /metrics: one moment, by the names of joinlib.metric's table. Pure.

Sums are over this run of the driver, as Prometheus expects of counters. An executor's figures are exported
once every unit with state has reported its size. A unit whose executor is gone has no rows until one comes for
it, perhaps never: until then, those that are there count as holding it in equal parts, so that nothing is missing
from the sum.
"""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric

from jobs.view import Moment
from joinlib.metric.export import Labels, Values, families
from joinlib.metric.skew import ds, excess, hottest
from joinlib.metric.table import LEVELS, PHASES, ROUTES, SERIES_UNITS, STEPS
from joinlib.model.letters import OF_INPUTS
from joinlib.model.time import NEVER

Samples = Mapping[Labels, float | None]


def metrics(moment: Moment, units: int, now: float) -> Iterator[Metric]:
    """Return the families of /metrics. `now` is in seconds of the figures' clock."""
    return families(values(moment, units, now))


def values(moment: Moment, units: int, now: float) -> Values:
    """Return every figure of the driver, by name."""
    found = {
        **_job(moment, units),
        **_inputs(moment, units, now),
        **_tables(moment),
        **_probes(moment),
        **_executors(moment),
        **(_units(moment) if units <= SERIES_UNITS else {}),
    }
    return {f"streamjoin_{name}": samples for name, samples in found.items()}


def _one(value: float | None) -> Samples:
    return {(): value}


def _job(moment: Moment, units: int) -> dict[str, Samples]:
    figures, known = moment.figures, moment.known
    receipts = figures.receipts.values() if figures and known else ()
    watermark = moment.watermark
    return {
        "phase": {(phase,): phase == moment.phase for phase in PHASES},
        "batches_total": _one(figures.batches if figures else 0),
        "batch_step_seconds_total": {(step,): moment.steps.get(step, 0.0) for step in STEPS},
        "last_batch_timestamp_seconds": _one(moment.done_at),
        "rows_out_total": _one(figures.rows_out if figures else 0),
        "state_rows": _one(figures.state_rows if figures and known else None),
        "dead_rows": _one(figures.dead_rows if figures and known else None),
        "state_bytes": _one(moment.mapped_bytes if known else None),
        "checkpoint_bytes": _one(figures.state_bytes if figures and known else None),
        "segments": _one(sum(r.segments for r in receipts) if known else None),
        "runs": _by_level(r.runs for r in receipts) if known else {},
        "run_bytes": _by_level(r.run_bytes for r in receipts) if known else {},
        "merged_bytes_total": _one(figures.merged_bytes if figures else 0),
        "memory_load": _one(moment.memory_load),
        "skew": _one(moment.skew(units)),
        "watermark_seconds": _one(watermark.timestamp() if watermark else None),
        "units": _one(units),
        "forked_batch": {(moment.origin[0],): moment.origin[1]} if moment.origin else {},
        "partitions": _one(moment.partitions),
        "true_rate": _one(moment.pace.true_rate(moment.ready)),
        "executors": {
            ("ready",): moment.ready,
            ("wanted",): moment.wanted,
            ("leaving",): moment.leaving,
            ("spare",): moment.spare,
        },
        "driver_heap_bytes": _one(moment.heap.used if moment.heap else None),
        "driver_heap_limit_bytes": _one(moment.heap.limit if moment.heap else None),
        "driver_gc_seconds_total": _one(moment.heap.collected_s if moment.heap else None),
    }


def _by_level(parts: Iterable[tuple[int, ...]]) -> Samples:
    sums = [0] * len(LEVELS)
    for part in parts:
        for at, value in enumerate(part):
            sums[min(at, len(sums) - 1)] += value
    return {(level,): value for level, value in zip(LEVELS, sums, strict=True)}


def _inputs(moment: Moment, units: int, now: float) -> dict[str, Samples]:
    figures, names = moment.figures, tuple(dict.fromkeys(moment.sources))
    at = {name: [i for i, source in enumerate(moment.sources) if source == name] for name in names}
    zeros = (0,) * len(moment.sources)
    rates = figures.rates(now)[0] if figures else ()
    tops = _highest(moment)
    mark = moment.watermark
    spread = {name: figures.spread(at[name], units) for name in names} if figures else {}
    return {
        "rows_in_total": _by(moment.by_source(figures.rows_in if figures else zeros)),
        "late_rows_total": _by(moment.by_source(figures.late if figures else zeros)),
        "bad_messages_total": _by(moment.by_source(figures.bad if figures else zeros)),
        "dead_letters_total": _dead(names, figures.dead if figures else {}),
        "deleted_rows_total": _by(moment.by_source(figures.deleted if figures else zeros)),
        "unknown_deleted_rows_total": _by(moment.by_source(figures.unknown if figures else zeros)),
        "arrival_rate": {(n,): rate for n, rate in moment.pace.arrivals().items()},
        "input_rate": {(n,): sum(rates[i] for i in at[n]) if rates else None for n in names},
        "lag_rows": _by(moment.lag_rows),
        "event_time_seconds": {(n,): tops.get(at[n][0]) for n in names},
        "watermark_delay_seconds": {
            (n,): tops[at[n][0]] - mark.timestamp() for n in names if mark and at[n][0] in tops
        },
        "input_skew": {(n,): ds(rows) for n, rows in spread.items()},
        "hottest_unit_ratio": {(n,): hottest(rows) for n, rows in spread.items()},
        "hot_key_ratio": {
            (n,): moment.hot.get(n, excess(rows) if n in moment.hashed else None)
            for n, rows in spread.items()
        },
    }


def _dead(names: Iterable[str], dead: Mapping[tuple[str, str], int]) -> Samples:
    """Return dead letters, and 0 where an input has none, so that its first one is a growth."""
    none: dict[Labels, float | None] = {(name, reason): 0 for name in names for reason in OF_INPUTS}
    return none | dict(dead.items())


def _tables(moment: Moment) -> dict[str, Samples]:
    used = {(name,): u for name, u in moment.used.items()}
    loads = {(name,): loaded for name, loaded in moment.loads.items()}
    return {
        "table_hits_total": {t: u.hits for t, u in used.items()},
        "table_misses_total": {t: u.misses for t, u in used.items()},
        "table_expired_total": {t: u.expired for t, u in used.items()},
        "table_queries_total": {t: u.queries for t, u in used.items()},
        "table_rows": {t: u.rows for t, u in used.items()},
        "table_bytes": {t: u.bytes for t, u in used.items()},
        "table_budget_bytes": {t: u.budget for t, u in used.items()},
        "table_version": {t: u.version for t, u in used.items()},
        "table_load_seconds": {t: loaded["seconds"] for t, loaded in loads.items()},
        "table_loaded_timestamp_seconds": {t: loaded["at"] for t, loaded in loads.items()},
        "table_kept_loads_total": {t: loaded["kept"] for t, loaded in loads.items()},
        "route_skew": {(route,): moment.route_skew.get(route) for route in ROUTES},
    }


def _probes(moment: Moment) -> dict[str, Samples]:
    all_asks = moment.asks
    pairs = [(a.name, other, at) for a in all_asks for at, other in enumerate(a.others)]
    by_name = {a.name: a for a in all_asks}
    return {
        "probe_position": {(i, j): by_name[i].position[at] for i, j, at in pairs},
        "probe_match_ratio": {(i, j): by_name[i].rate[at] for i, j, at in pairs},
        "probe_matches": {(i, j): by_name[i].per_hit[at] for i, j, at in pairs},
        "probe_keys": {(a.name,): a.keys for a in all_asks},
        "probe_predicted_seconds": {(a.name,): a.predicted for a in all_asks},
        "probe_measured_seconds": {(a.name,): a.measured for a in all_asks},
    }


def _by(figures: Mapping[str, int]) -> Samples:
    return {(name,): value for name, value in figures.items()}


def _highest(moment: Moment) -> dict[int, float]:
    """Return the highest event time of each input, in seconds."""
    receipts = moment.figures.receipts.values() if moment.figures else ()
    tops = [max(column) for column in zip(*(r.highest for r in receipts), strict=True)]
    return {i: top / 1e6 for i, top in enumerate(tops) if top != NEVER}


def _executors(moment: Moment) -> dict[str, Samples]:
    receipts = tuple(moment.figures.receipts.values()) if moment.figures else ()
    there = moment.there or tuple(sorted({r.executor for r in receipts if r.executor}))
    held = {e: [r for r in receipts if r.executor == e] for e in there}
    by_executor = moment.figures.held_by_executor() if moment.figures else {}
    homeless = sum(size for executor, size in by_executor.items() if executor not in there)
    loads = {e: by_executor.get(e, 0) + homeless / len(there) for e in there} if moment.known else {}
    heaps = {e: heap for e, heap in moment.heaps.items() if e in there}
    newest = {e: max(units, key=lambda r: r.batch) for e, units in held.items() if units}
    return {
        "executor_state_bytes": {(e,): load for e, load in loads.items()},
        "executor_state_rows": {(e,): sum(r.state_rows for r in held[e]) for e in loads},
        "executor_units": {(e,): len(held[e]) for e in loads},
        "executor_capacity_bytes": {(e,): moment.budget for e in there},
        "executor_memory_load": {(e,): load / moment.budget for e, load in loads.items() if moment.budget},
        "executor_working_set_bytes": {(e,): r.working_set for e, r in newest.items()},
        "executor_memory_limit_bytes": {(e,): r.memory_limit for e, r in newest.items()},
        "executor_heap_bytes": {(e,): heap.used for e, heap in heaps.items()},
        "executor_heap_limit_bytes": {(e,): heap.limit for e, heap in heaps.items()},
        "executor_gc_seconds_total": {(e,): heap.collected_s for e, heap in heaps.items()},
    }


def _units(moment: Moment) -> dict[str, Samples]:
    if moment.figures is None:
        return {}
    receipts, work = moment.figures.receipts, moment.figures.work
    return {
        "unit_state_rows": {(str(u),): r.state_rows for u, r in receipts.items()},
        "unit_state_bytes": {(str(u),): r.mapped_bytes for u, r in receipts.items()},
        "unit_rows_in_total": {(str(u),): w.rows_in for u, w in work.items()},
        "unit_rows_out_total": {(str(u),): w.rows_out for u, w in work.items()},
        "unit_seconds_total": {(str(u),): w.seconds for u, w in work.items()},
        "unit_commit_seconds_total": {(str(u),): w.commit_seconds for u, w in work.items()},
    }
