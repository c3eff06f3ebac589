"""The order of stages: by what is known of the inputs, and for a checkpoint as it was begun."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.checkpoint.identity import identify, orders_of
from joinlib.checkpoint.planned import plan_of
from joinlib.expr.types import TIMESTAMP
from joinlib.model.fingerprint import fingerprint
from joinlib.model.order import Shape, leaves, shape_of, written
from joinlib.model.stage import Pipeline, Stage
from joinlib.plan import JoinOptions, SourceInput, pipeline, pipeline_of
from joinlib.plan.explain.formats import as_json
from joinlib.plan.explain.orders import alternatives
from joinlib.plan.explain.pipeline import explain
from joinlib.plan.explain.words import spoken
from joinlib.plan.order import WORTH, Decide, as_written, cheapest, remembered
from joinlib.plan.source import InputStatistics
from joinlib.spec import parse

BIGINT = pa.int64()
Q5 = (
    "SELECT * FROM customer, orders, lineitem, supplier, nation, region WHERE ck = ock AND ok = lok AND lsk = sk"
    " AND cn = sn AND sn = nk AND nr = rk AND rname = 3"
)
TPCH = {
    "customer": (150_000, {"ck": 150_000, "cn": 25}),
    "orders": (1_500_000, {"ok": 1_500_000, "ock": 100_000}),
    "lineitem": (6_000_000, {"lok": 1_500_000, "lsk": 10_000}),
    "supplier": (10_000, {"sk": 10_000, "sn": 25}),
    "nation": (25, {"nk": 25, "nr": 5}),
    "region": (5, {"rk": 5, "rname": 5}),
}
BY_COST = (((("customer", ("nation", "region")), "orders"), "lineitem"), "supplier")
BY_TEXT = ((((("customer", "orders"), "lineitem"), "supplier"), "nation"), "region")


def tpch(known: bool = True) -> dict[str, SourceInput]:
    return {
        name: SourceInput(
            pa.schema([(column, BIGINT) for column in columns]),
            statistics=InputStatistics(rows, columns) if known else InputStatistics(),
        )
        for name, (rows, columns) in TPCH.items()
    }


def planned(sql: str, inputs: Mapping[str, SourceInput], decide: Decide) -> Pipeline:
    return pipeline(sql, inputs, JoinOptions(), decide=decide)


def shape(plan: Pipeline) -> Shape:
    (order,) = plan.orders
    return order.shape


def test_a_small_filtered_table_comes_first() -> None:
    """Q5: what is selective is joined early, and the key that all nations share last."""
    plan = planned(Q5, tpch(), cheapest())

    assert shape(plan) == BY_COST
    (order,) = plan.orders
    assert order.why == "it is the cheapest"
    stored = {written(part.shape): part.rows for part in order.parts}
    assert stored["nation, region"] == 5
    assert stored["(customer, (nation, region)), orders"] == 300_000
    price = {found.name: found.seconds + found.bytes * 1e-9 for found in order.alternatives}
    assert price["cheapest stages"] < WORTH * price["order of the text"]
    assert price["as many inputs as one key has"] > 10 * price["order of the text"]


def test_the_plan_says_why() -> None:
    """In the names of the text, with what is expected of each stage; and what else there was."""
    sql = Q5.replace("FROM customer,", "FROM customer AS buyer,")
    plan = planned(sql, tpch(), cheapest())

    told = explain(plan)
    assert (
        "Order of joins\n  (((buyer, (nation, region)), orders), lineitem), supplier: it is the cheapest"
        in told
    )
    assert "  stores    buyer: " in told
    assert "              nation, region: 5 rows, 0.3 KiB" in told
    first, paths, stored, chosen, order, *_ = alternatives(spoken(plan))
    assert first == "buyer, lineitem, nation, orders, region, supplier: it is the cheapest"
    assert chosen.startswith("* cheapest stages ")
    assert chosen.endswith(" of state, 5 levels")
    assert order.strip() == "(((buyer, (nation, region)), orders), lineitem), supplier"
    assert paths.startswith("  paths ")
    assert stored.strip().startswith("buyer by ck; buyer by cn; orders by ck; ")
    assert json.loads(as_json(plan))["orders"][0]["alternatives"][2]["name"] == "order of the text"


def test_parts_of_the_query_have_rows_of_their_own() -> None:
    """A tenth for groups, each with its key, and what a map passes on; inputs are called as the text calls them."""
    sql = (
        "WITH o AS (SELECT nk, count(*) AS n FROM nation JOIN region ON nr = rk GROUP BY nk),"
        " s AS (SELECT sk, sn, uuid FROM (SELECT sk, sn, sk + 1 AS uuid FROM supplier) UNION ALL"
        " SELECT sk, sn, sk FROM supplier)"
        " SELECT o.n FROM o, nation, s, lineitem WHERE o.nk = nation.nk AND nation.nk = sn AND sk = lsk"
    )
    plan = pipeline(sql, tpch(), JoinOptions(), decide=cheapest(), mode="changelog")

    (order,) = spoken(plan).orders
    assert {"o", "nation", "s", "lineitem"} == set(order.inputs) != set(plan.orders[0].inputs)
    rows = {part.shape: part.rows for part in order.parts}
    assert (rows["o"], rows["nation"], rows["s"]) == (2.5, 25, 20_000)


def test_a_plan_says_that_nothing_is_known() -> None:
    plan = planned(Q5, tpch(known=False), cheapest())

    assert "nothing is known of the inputs, so it is the order of the text" in explain(plan)
    assert "  the rows of no input are known: write inputs.NAME.statistics" in alternatives(plan)
    one_key = planned("SELECT ck FROM customer JOIN orders ON ck = ock", tpch(), cheapest())
    assert "Order of joins" not in explain(one_key)
    (line,) = alternatives(one_key)
    assert line.startswith("Nothing is to be chosen")


def test_stages_join_what_is_decided() -> None:
    """Each reads the one before, and stores of it what later ones read."""
    stages = planned(Q5, tpch(), cheapest()).stages

    assert [[i.alias for i in stage.inputs] for stage in stages] == [
        ["nation", "region"],
        ["customer", "$0"],
        ["$1", "orders"],
        ["$2", "lineitem"],
        ["$3", "supplier"],
    ]


def test_the_columns_are_those_of_the_text() -> None:
    plans = [planned(Q5, tpch(), decide) for decide in (as_written, cheapest())]

    assert plans[0].schema == plans[1].schema
    assert plans[0].schema.names == [c for _, columns in TPCH.values() for c in columns]


def test_nothing_known_is_no_reason_to_leave_the_text() -> None:
    plan = planned(Q5, tpch(known=False), cheapest())

    assert shape(plan) == BY_TEXT
    assert fingerprint(plan) == fingerprint(planned(Q5, tpch(), as_written))


def test_an_unknown_input_counts_as_the_largest() -> None:
    """So a stream without statistics is joined late."""
    inputs = tpch()
    inputs["lineitem"] = SourceInput(inputs["lineitem"].schema)
    inputs["orders"] = SourceInput(inputs["orders"].schema)
    (order,) = planned(Q5, inputs, cheapest()).orders

    rows = {part.shape: part.rows for part in order.parts}
    assert rows["lineitem"] == rows["orders"] == 150_000


def test_what_was_decided_stays() -> None:
    """Whatever the figures say; but only if it is an order of this query."""
    decided = (("region", "nation"), (("customer", "orders"), ("lineitem", "supplier")))
    plan = planned(Q5, tpch(), remembered([decided]))

    assert set(leaves(shape(plan))) == set(TPCH)
    assert shape(plan) == ((("customer", "orders"), ("lineitem", "supplier")), ("nation", "region"))
    for other in (
        ("nation", "region"),
        (("customer", "region"), ("orders", "lineitem"), ("supplier", "nation")),
    ):
        assert shape(planned(Q5, tpch(), remembered([other]))) == BY_TEXT
    assert shape(planned(Q5, tpch(), remembered([]))) == BY_TEXT  # of a version that knew the text's only


def test_parts_with_the_same_names_keep_orders_of_their_own() -> None:
    """Aliases are unique in the whole query, whatever its parts call their inputs."""
    join = "SELECT ock FROM customer c JOIN orders o ON ck = ock JOIN nation n ON cn = nk"
    sql = f"{join} WHERE n.nr = 1 UNION ALL {join} WHERE o.ok = 1"
    begun = planned(sql, tpch(), cheapest())
    kept = [order.shape for order in begun.orders]

    assert [order.shape for order in spoken(begun).orders] == [(("c", "n"), "o"), (("c", "o"), "n")]
    again = planned(sql, tpch(known=False), remembered(shape_of(json.loads(json.dumps(kept)))))
    assert [order.shape for order in again.orders] == kept
    assert fingerprint(again) == fingerprint(begun)
    assert fingerprint(planned(sql, tpch(known=False), cheapest())) != fingerprint(begun)


def test_members_of_several_types_are_compared_in_the_widest() -> None:
    """a and b are both equal to a DOUBLE, which is not to be equal to each other."""
    sql = "SELECT * FROM a, b, c, d WHERE a.k = c.x AND c.x = b.k AND c.j = d.j"
    kinds = {
        "a": {"k": BIGINT},
        "b": {"k": BIGINT},
        "c": {"x": pa.float64(), "j": BIGINT},
        "d": {"j": BIGINT},
    }
    inputs = {name: SourceInput(pa.schema(list(columns.items()))) for name, columns in kinds.items()}
    first, *_ = planned(sql, inputs, remembered([((("a", "b"), "c"), "d")])).stages

    assert isinstance(first, Stage)
    assert [i.alias for i in first.inputs] == ["a", "b"]
    assert {c.value.type for i in first.inputs for c in i.columns if c.name in i.keys} == {pa.float64()}


def test_rows_that_time_bounds_release_are_not_kept_for_ever() -> None:
    """a and c are bound to each other through b only: a stage of both alone would keep all their rows."""
    bound = "a.t BETWEEN b.t - INTERVAL 1 MINUTE AND b.t AND c.t BETWEEN b.t - INTERVAL 1 MINUTE AND b.t"
    sql = f"SELECT a.t FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j AND a.i = c.i AND c.h = d.h AND {bound}"
    schema = pa.schema([(name, BIGINT) for name in "kjih"] + [("t", TIMESTAMP)])
    few = InputStatistics(1000, {"k": 10, "j": 10, "i": 1000, "h": 1000})
    timeless = sql.replace(f" AND {bound}", "")
    sources = dict.fromkeys("abcd", SourceInput(schema, "t", statistics=few))

    assert without_b(shape(planned(timeless, sources, cheapest())))
    assert not without_b(shape(planned(sql, sources, cheapest())))


def without_b(of: Shape) -> bool:
    """Whether a stage joins a and c, and not b."""
    found = set(leaves(of))
    return not isinstance(of, str) and (({"a", "c"} <= found and "b" not in found) or any(map(without_b, of)))


SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: orders}
spec:
  inputs:
    a: {schema: "k BIGINT, j BIGINT", files: {path: a}}
    b: {schema: "k BIGINT, i BIGINT", files: {path: b}}
    c: {schema: "i BIGINT, j BIGINT", files: {path: c}}
  sql: SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.i = c.i AND a.j < c.j
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
"""


def files(folder: Path, k: int, i: int) -> None:
    """1000 rows in each input, with so many values of each key."""
    for name in "abc":
        (folder / name).mkdir(exist_ok=True)
        columns = {
            column: [n % values for n in range(1000)] for column, values in {"k": k, "i": i, "j": 9}.items()
        }
        pq.write_table(pa.table(columns), folder / name / "1.parquet")


def test_files_that_grow_change_no_plan_of_a_checkpoint(tmp_path: Path) -> None:
    """What footers said when it was begun stays decided; a new checkpoint decides anew."""
    document = parse(SPEC, "orders.yaml", tmp_path)
    files(tmp_path, k=10, i=1000)
    (tmp_path / "checkpoint").mkdir()
    assert shape(plan_of(document)) == ("a", ("b", "c"))
    identify(tmp_path / "checkpoint", "orders", begun := plan_of(document))

    files(tmp_path, k=1000, i=10)
    assert shape(pipeline_of(document)) == (("a", "b"), "c")  # nothing is known without the files
    assert fingerprint(plan_of(document)) == fingerprint(begun)
    identify(tmp_path / "checkpoint", "orders", plan_of(document))
    assert orders_of(tmp_path / "checkpoint") == (("a", ("b", "c")),)

    other = parse(SPEC.replace("path: checkpoint", "path: another"), "orders.yaml", tmp_path)
    (order,) = plan_of(other).orders
    assert (order.shape, order.why) == ((("a", "b"), "c"), "no other order is much cheaper than the text's")


def test_a_checkpoint_of_the_version_before_keeps_the_order_of_the_text(tmp_path: Path) -> None:
    document = parse(SPEC, "orders.yaml", tmp_path)
    (tmp_path / "checkpoint").mkdir()
    identify(tmp_path / "checkpoint", "orders", pipeline_of(document))
    file = tmp_path / "checkpoint" / "streamjoin.json"
    file.write_text(json.dumps({k: v for k, v in json.loads(file.read_text()).items() if k != "orders"}))
    files(tmp_path, k=10, i=1000)

    assert shape(plan_of(document)) == (("a", "b"), "c")
    file.write_text(file.read_text()[:20])  # cut off: the run tells it
    assert orders_of(tmp_path / "checkpoint") == ()


def test_the_spec_says_more_than_files(tmp_path: Path) -> None:
    files(tmp_path, k=10, i=1000)
    told = SPEC
    for name in "abc":
        distinct = {"a": "k: 1000", "b": "k: 1000, i: 10", "c": "i: 10"}[name]
        told = told.replace(
            f"files: {{path: {name}}}", f"statistics: {{distinct: {{{distinct}}}}}, files: {{path: {name}}}"
        )
    text = SPEC.replace("  checkpoint:", "  join: {order: text}\n  checkpoint:")

    assert shape(plan_of(parse(told, "orders.yaml", tmp_path))) == (("a", "b"), "c")
    (order,) = plan_of(parse(text, "orders.yaml", tmp_path)).orders
    assert (order.shape, order.why) == ((("a", "b"), "c"), "join.order is text")


@pytest.mark.parametrize("of", ["a", ("a", ("b", "c")), ((("a", "b"), "c", "d"), "e")])
def test_shapes_are_kept_as_lists(of: Shape) -> None:
    assert shape_of(json.loads(json.dumps(of))) == of


def test_an_outer_join_that_the_text_ends_first_keeps_its_order() -> None:
    """The stages of the text are then of other parts than those that there are to choose among."""
    kind = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    known = InputStatistics(1000)
    inputs = {name: SourceInput(kind, statistics=known) for name in "acbd"}
    inputs |= {name: SourceInput(kind, role="table") for name in "pq"}
    sql = (
        "SELECT a.v FROM p JOIN a ON a.v + 1 = p.v AND a.v <> p.v JOIN c ON a.v + 1 = c.v LEFT JOIN q ON a.v + 1 = q.v"
        " JOIN b ON a.k = b.k JOIN d ON a.k = d.k"
    )

    assert pipeline(sql, inputs, JoinOptions(), decide=cheapest(), mode="changelog").stages
