"""What a driver says of itself."""

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from jobs.exported import metrics
from jobs.figures import Took, beginning
from jobs.view import Moment, status
from joinlib.lookup.used import Used
from joinlib.model.time import NEVER
from tests.unit.jobs.test_figures import RECEIPT, Report

EMPTY = Moment(("orders", "payments"), phase="Waiting", wanted=2, budget=1000)
FIGURES = beginning(2, 0.0).after(Report(7), 1.0).after(Report(8), 2.0)
RUNNING = replace(
    EMPTY,
    phase="Running",
    figures=FIGURES,
    took=Took(8, 0.5),
    lag={"orders": {"rows": 3, "slices": 1}},
    there=("1", "2"),
)


def samples(moment: Moment) -> dict[tuple[str, ...], float]:
    """As a scraper reads them."""

    class Now(Collector):
        def collect(self):
            return metrics(moment, 4, 2.0)

    registry = CollectorRegistry()
    registry.register(Now())
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_status_of_a_driver_that_waits() -> None:
    """Sums are 0; what is not known is null."""
    said = status(EMPTY, 4, 0.0)
    assert said == {
        "phase": "Waiting",
        "message": "",
        "batch": None,
        "batchSeconds": None,
        "rowsIn": 0,
        "rowsOut": 0,
        "rate": 0.0,
        "lag": {},
        "stateRows": 0,
        "stateBytes": 0,
        "memoryLoad": None,
        "skew": None,
        "executors": {"ready": 0, "wanted": 2, "leaving": 0, "spare": 0, "refused": None},
        "partitions": None,
        "watermark": None,
        "late": {},
        "deleted": {},
        "unknownDeletes": {},
        "bad": {},
        "deadLetters": {},
        "tables": {},
        "probeOrders": {},
        "routeSkew": {},
        "configHash": None,
        "columns": {},
    }


def test_status_of_a_driver_that_runs() -> None:
    """Two units of four hold 30 rows each, 400 bytes with their indexes; two executors may hold 1000 bytes each."""
    said = status(RUNNING, 4, 2.0)
    assert (said["phase"], said["batch"], said["batchSeconds"]) == ("Running", 8, 0.5)
    assert (said["rowsIn"], said["rowsOut"], said["rate"]) == (120, 20, 60.0)
    assert (said["stateRows"], said["stateBytes"], said["memoryLoad"], said["skew"]) == (60, 800, 0.4, 1.0)
    assert (said["lag"], said["late"]) == ({"orders": 3}, {"orders": 4, "payments": 0})
    assert said["watermark"] == "1970-01-01T00:00:00.000005+00:00"


def test_status_of_tables() -> None:
    """Of two units: lookups add up over batches, caches over units, a whole table is one."""
    asked = Used(hits=8, misses=2, expired=1, queries=1, rows=3, bytes=40, budget=50, table="a")
    whole = Used(hits=10, rows=9, bytes=90, budget=99, version=2, table="c")
    receipts = tuple(replace(RECEIPT, unit=u, tables=(asked, whole)) for u in range(2))
    silent = replace(
        RECEIPT, tables=(replace(asked, hits=0, misses=0, expired=0, queries=0), Used(version=3, table="c"))
    )
    figures = beginning(2, 0.0).after(Report(0, receipts), 1.0).after(Report(1, (silent,)), 2.0)
    loads = {"c": {"version": 3, "seconds": 0.25, "at": 9.0, "kept": 1}}
    moment = replace(
        RUNNING,
        figures=figures,
        loads=loads,
        route_skew={"hash": 0.5, "rule": 0.125},
    )
    said = status(moment, 4, 2.0)
    kept = {"rows": 6, "bytes": 80, "budget": 100, "version": None, "loadSeconds": None, "keptLoads": None}
    assert said["tables"]["a"] == {"hits": 16, "misses": 4, "expired": 2, "queries": 2, **kept}
    assert said["tables"]["c"]["version"] == 3, "the newest that a unit has seen"
    assert (said["tables"]["c"]["hits"], said["tables"]["c"]["rows"]) == (20, 9)
    assert (said["tables"]["c"]["loadSeconds"], said["tables"]["c"]["keptLoads"]) == (0.25, 1)
    assert said["routeSkew"] == {"hash": 0.5, "rule": 0.125}
    found = samples(moment)
    assert found["streamjoin_table_hits_total", "a"] == 16
    assert found["streamjoin_table_expired_total", "a"] == 2
    assert found["streamjoin_table_bytes", "c"] == 90
    assert found["streamjoin_table_version", "c"] == 3
    assert ("streamjoin_table_version", "a") not in found, "a cache has none"
    assert found["streamjoin_table_load_seconds", "c"] == 0.25
    assert found["streamjoin_route_skew", "rule"] == 0.125


def test_what_is_not_known_is_not_said() -> None:
    """A unit that had state before this run and has not been heard of: no load, no skew, no gauge of the state."""
    moment = replace(RUNNING, stored=frozenset({0, 3}))
    said = status(moment, 4, 2.0)
    assert (said["memoryLoad"], said["skew"]) == (None, None)
    names = {name for name, *_ in samples(moment)}
    assert not names & {"streamjoin_memory_load", "streamjoin_skew", "streamjoin_state_rows"}
    assert status(replace(RUNNING, there=()), 4, 2.0)["memoryLoad"] is None
    assert status(replace(RUNNING, budget=None), 4, 2.0)["memoryLoad"] is None


def test_hardly_any_rows_have_no_skew() -> None:
    """Ten rows a unit, on average: below that, some unit always stands out."""
    few = beginning(2, 0.0).after(Report(0, (replace(RECEIPT, state_rows=39),)), 1.0)
    enough = beginning(2, 0.0).after(Report(0, (replace(RECEIPT, state_rows=40),)), 1.0)
    assert status(replace(RUNNING, figures=few), 4, 2.0)["skew"] is None
    assert status(replace(RUNNING, figures=enough), 4, 2.0)["skew"] == 3


def test_no_watermark_before_the_first_time() -> None:
    """Nor a gauge of it."""
    receipts = (replace(RECEIPT, watermark=NEVER),)
    moment = replace(RUNNING, figures=beginning(2, 0.0).after(Report(0, receipts), 1.0))
    assert status(moment, 4, 1.0)["watermark"] is None
    assert ("streamjoin_watermark_seconds",) not in samples(moment)


def test_metrics_are_what_a_scraper_expects() -> None:
    """Names, labels and values; as many series before the first row as after it, but for what is not known yet."""
    found = samples(RUNNING)
    assert found["streamjoin_batches_total",] == 2
    assert found["streamjoin_rows_in_total", "payments"] == 80
    assert found["streamjoin_rows_out_total",] == 20
    assert found["streamjoin_late_rows_total", "orders"] == 4
    assert found["streamjoin_state_bytes",] == 800
    assert found["streamjoin_memory_load",] == 0.4
    assert found["streamjoin_lag_rows", "orders"] == 3
    assert found["streamjoin_executors", "ready"] == 2
    assert found["streamjoin_watermark_seconds",] == 5e-6
    assert {k for k in samples(EMPTY) if k[0].endswith("_total")} == {
        k for k in found if k[0].endswith("_total") and not k[0].startswith("streamjoin_unit_")
    }


def test_a_source_that_is_read_twice_counts_twice() -> None:
    """A self-join reads it under two names."""
    moment = replace(RUNNING, sources=("orders", "orders"))
    assert samples(moment)["streamjoin_rows_in_total", "orders"] == 120


def test_tables_of_several_stages() -> None:
    """Outputs, and stages that ask, look up different tables: each has its own figures, however many there are."""
    one, two, three = (Used(hits=n, rows=n, table=name) for n, name in ((1, "a"), (2, "b"), (3, "c")))
    receipts = (
        *(replace(RECEIPT, unit=unit, tables=(one,)) for unit in range(4)),
        *(replace(RECEIPT, unit=unit, tables=(two, three)) for unit in range(4, 8)),
    )
    figures = beginning(2, 0.0).after(Report(0, receipts), 1.0)
    assert {name: (used.hits, used.rows) for name, used in figures.tables.items()} == {
        "a": (4, 4),
        "b": (8, 8),
        "c": (12, 12),
    }
