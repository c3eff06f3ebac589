"""A query that reads fewer columns goes on from the state of one that read more."""

import json
from pathlib import Path
from typing import Any

import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.model.fingerprint import as_json, compare
from joinlib.model.stage import Pipeline
from joinlib.plan.explain import explain
from joinlib.spec import StreamJoin
from tests.laws.document import written

KEPT = "kept, as the checkpoint has it"
FROM_KEPT = "computed from what is kept"
SCHEMA = "id BIGINT, k BIGINT, j BIGINT, note STRING"
ONE = "FROM a JOIN b ON a.k = b.k"
JOINED = "FROM a JOIN b ON a.k = b.k AND a.j <> b.j LEFT JOIN c ON c.k = a.k"
TWO = "FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.j = b.j"
THREE = "FROM a JOIN b ON a.k = b.k JOIN c ON c.j = b.j"
EXISTS = "FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.note <> b.note)"


def job(folder: Path, sql: str, checkpoint: str = "checkpoint", **join: str) -> StreamJoin:
    spec = {
        "sql": sql,
        "inputs": {name: {"schema": SCHEMA, "files": {"path": name}} for name in "abc"},
        "output": {"mode": "changelog", "noop": {}},
        "checkpoint": {"path": checkpoint},
        "join": join,
    }
    return written(spec, folder)


def begin(folder: Path, plan: Pipeline) -> None:
    (folder / "checkpoint").mkdir()
    identify(folder / "checkpoint", "follow", plan)


@pytest.mark.parametrize(
    ("source", "strategy"), [*((s, "auto") for s in (ONE, JOINED, TWO, THREE, EXISTS)), (THREE, "paths")]
)
def test_columns_that_are_read_no_more_are_kept(tmp_path: Path, source: str, strategy: str) -> None:
    """Also of joined rows and between stages. They come back as they went, and others are refused."""
    wide, narrow = (f"SELECT {columns} {source}" for columns in ("a.id, b.note, a.note AS an", "a.id"))
    before = plan_of(job(tmp_path, wide, strategy=strategy))
    assert compare(as_json(before), as_json(plan_of(job(tmp_path, narrow, strategy=strategy))))
    begin(tmp_path, before)

    after = plan_of(job(tmp_path, narrow, strategy=strategy))
    assert as_json(after) == as_json(before)
    assert f"a.note, STRING: {KEPT}" in explain(after)
    assert [c.name for c in after.last.select if not c.name.startswith("_")] == ["id"]
    again = plan_of(job(tmp_path, wide, strategy=strategy))
    assert as_json(again) == as_json(before)
    assert KEPT not in explain(again)
    other = plan_of(job(tmp_path, f"SELECT a.id, b.id AS other {source}", strategy=strategy))
    assert any(
        "b.id is not among the stored columns of b" in why for why in compare(as_json(before), as_json(other))
    )
    assert KEPT not in explain(other), "what does not fit is planned as it would begin"


@pytest.mark.parametrize("above", ["", " JOIN c ON c.j = b.j"])
def test_the_order_of_conditions_says_nothing(tmp_path: Path, above: str) -> None:
    """Of an input, of a join, and of a join below another."""
    conditions = [
        "a.j > 1",
        "a.note LIKE 'x AND (%'",
        "a.j < b.j",
        "(b.note = a.note OR b.j > 2)",
        "b.id <> a.id",
    ]

    def planned(some: list[str]) -> dict[str, Any]:
        return as_json(plan_of(job(tmp_path, f"SELECT a.id, a.j {ONE}{above} WHERE {' AND '.join(some)}")))

    before, after = planned(conditions), planned(conditions[::-1])
    assert before != after
    assert compare(before, after) == []
    (why, *_) = compare(before, planned(conditions[1:]))
    assert (
        "the filter of a was ((a.j > 1) AND (a.note LIKE 'x AND (%')) and is (a.note LIKE 'x AND (%')" in why
    )


@pytest.mark.parametrize(
    ("source", "equal", "goes_on"),
    [
        (ONE, "a.note = b.note", True),
        (ONE, "a.j = b.id", False),  # b.id is not stored
        (THREE, "a.note = c.note", True),
        (THREE, "a.k = b.j", True),  # both are keys, of different stages
    ],
)
@pytest.mark.parametrize("strategy", ["auto", "paths"])
def test_an_equality_may_come_later(
    tmp_path: Path, source: str, equal: str, goes_on: bool, strategy: str
) -> None:
    """Rows are stored and found by the keys that were, and it is decided of those that are found."""
    columns = "a.id, a.k, a.j, a.note, b.note AS bn" + (", c.note AS cn" if source == THREE else "")
    before = plan_of(job(tmp_path, f"SELECT {columns} {source}", strategy=strategy))
    begin(tmp_path, before)
    after = plan_of(job(tmp_path, f"SELECT {columns} {source} WHERE {equal}", strategy=strategy))
    assert (compare(as_json(before), as_json(after)) == []) is goes_on


COLUMNS = "a.id, a.k, a.j, a.note, b.id AS bid, b.j AS bj, b.note AS bn"
LESS = "FROM a LEFT JOIN b ON a.k = b.k WHERE a.j < b.j"
CHAIN = "FROM a JOIN b ON a.k = b.k JOIN c ON c.k = a.k"


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        (ONE, f"{ONE} WHERE b.k = 2", {}),  # of one input; 2 is part of no name
        # No row is left out because a condition that is new fails for NULL.
        *(
            ("FROM a JOIN b ON a.j < b.j", f"WHERE {one}", {})
            for one in ("a.note <> 'x'", "a.note < b.note", "a.id = b.id")
        ),
        (ONE.replace("a.k", "a2.k").replace("FROM a", "FROM a a2"), "WHERE b.k = 2", {}),
        (LESS, f"{LESS} AND a.id > 1", {}),  # which stays the inner join that its condition has made it
        *(
            (CHAIN, f"{CHAIN} WHERE {one}", {"join": {"strategy": "binary"}})
            for one in ("a.j > 1", "a.j < b.j")
        ),
        (ONE, f"{ONE} WHERE a.j > 1", {"output": {"mode": "changelog", "noop": {}, "key": ["note"]}}),
        (ONE, f"{ONE} JOIN t ON t.k = a.k", {"output": {"mode": "changelog", "noop": {}, "key": ["note"]}}),
    ],
)
def test_conditions_that_may_come(tmp_path: Path, before: str, after: str, more: dict[str, Any]) -> None:
    """Whatever their texts are like, however the joins are done, and whatever routes what comes out."""
    columns = COLUMNS.replace("a.", "a2.") if "a2" in before else COLUMNS
    after = after if after.startswith("FROM") else f"{before} {after}"
    known = planned(tmp_path, f"SELECT {columns} {before}", more)
    begin(tmp_path, known)
    assert compare(as_json(known), as_json(planned(tmp_path, f"SELECT {columns} {after}", more))) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a.id, a.k FROM a", "SELECT a.id, a.k FROM a JOIN t ON t.k = a.k"),
        (
            "SELECT x.id FROM a x JOIN t ON t.k = x.k",
            "SELECT a.note FROM a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k)",
        ),
    ],
)
def test_tables_come_and_go_where_nothing_is_stored(tmp_path: Path, one: str, other: str) -> None:
    plans = [as_json(planned(tmp_path, sql, {"output": {"noop": {}}})) for sql in (one, other)]
    assert compare(*plans) == compare(*plans[::-1]) == []
    elsewhere = as_json(planned(tmp_path, other.replace("FROM a", "FROM b a"), {"output": {"noop": {}}}))
    assert compare(plans[0], elsewhere) != []


def test_texts_with_quotes_are_not_taken_apart(tmp_path: Path) -> None:
    plans = [
        as_json(plan_of(job(tmp_path, f"SELECT a.id {ONE} WHERE a.note = 'q'' AND {text} AND c'")))
        for text in ("a AND b", "b AND a")
    ]
    assert compare(*plans) != []


@pytest.mark.parametrize(("condition", "goes_on"), [("CAST(a.note AS INT) > 1", False), ("a.j > 1", True)])
def test_rows_that_fail_still_become_dead_letters(tmp_path: Path, condition: str, goes_on: bool) -> None:
    """Only conditions before the joins can send them."""
    more = {"deadLetters": {"path": "letters"}, "output": {"noop": {}}}
    known = planned(tmp_path, f"SELECT {COLUMNS} {ONE}", more, onError="deadLetter")
    begin(tmp_path, known)
    after = planned(tmp_path, f"SELECT {COLUMNS} {ONE} WHERE {condition}", more, onError="deadLetter")
    assert (compare(as_json(known), as_json(after)) == []) is goes_on


def planned(folder: Path, sql: str, more: dict[str, Any], **of_inputs: str) -> Pipeline:
    """The plan of a job over three streams and a table, with further fields."""
    given = fields(folder, "SELECT id FROM a")
    inputs = {name: {**given["inputs"][name], **of_inputs} for name in "abc" if f" {name}" in sql}
    table = {"t": {**given["inputs"]["a"], "role": "table"}} if "FROM t" in sql or "JOIN t" in sql else {}
    return plan_of(written({**given, **more, "sql": sql, "inputs": {**inputs, **table}}, folder))


def test_a_filter_says_which_columns_it_may_read(tmp_path: Path) -> None:
    """If it only has more conditions than before."""
    before, more, other = (
        as_json(plan_of(job(tmp_path, f"SELECT a.id {ONE} WHERE {text}")))
        for text in ("b.j > 1", "b.j > 1 AND b.note = 'x'", "b.note = 'x'")
    )
    hint = "(a condition can come later if it reads only b.k)"
    assert hint in compare(before, more)[0]
    assert hint not in compare(before, other)[0]


def test_a_plan_that_fits_is_left_as_it_is(tmp_path: Path) -> None:
    """The same alias in two branches stores other columns in each: none is added to the other's."""
    text = "SELECT a.id FROM a JOIN b ON a.k = b.k UNION ALL SELECT a.j FROM a JOIN b ON a.j = b.j"
    before = plan_of(job(tmp_path, text))
    begin(tmp_path, before)
    assert as_json(plan_of(job(tmp_path, text))) == as_json(before)


GROUPS = "SELECT a.k, {} FROM a{} GROUP BY a.k"
JOIN = " JOIN b ON a.id = b.id"
CALLS = ("sum(a.j) AS s", "count(*) AS n", "max(a.note) FILTER (WHERE a.id > 3 OR a.note LIKE 'x%') AS m")
ALL = ", ".join(CALLS)


@pytest.mark.parametrize("join", ["", JOIN])
@pytest.mark.parametrize(
    "columns", [CALLS[1], CALLS[2], ", ".join(CALLS[::-1]), f"{CALLS[2]}, 1 + count(*) AS o", "1 AS one"]
)
def test_aggregates_that_are_read_no_more_are_kept(tmp_path: Path, columns: str, join: str) -> None:
    """Their places in the state stay theirs, in whatever order those that are left are selected."""
    before = plan_of(job(tmp_path, GROUPS.format(ALL, join)))
    assert compare(as_json(before), as_json(plan_of(job(tmp_path, GROUPS.format(columns, join)))))
    begin(tmp_path, before)

    after = plan_of(job(tmp_path, GROUPS.format(columns, join)))
    assert as_json(after) == as_json(before)
    told = explain(after)
    assert (f"sum(a.j) BIGINT: {KEPT}" in told) == ("sum" not in columns)
    assert f"count(*) BIGINT: {KEPT}" not in told or "count" not in columns
    assert KEPT not in explain(plan_of(job(tmp_path, GROUPS.format(ALL, join))))


@pytest.mark.parametrize(
    ("stored", "asked", "goes_on"),
    [
        ("sum(a.j) AS s, count(a.j) AS n", "avg(a.j) AS m", True),
        ("avg(a.j) AS m", "sum(a.j) AS s, count(a.j) AS n, count(*) AS c", True),
        ("median(a.j) AS m", "percentile(a.j, 0.9) AS p", True),
        ("max(a.j) AS m", "count(*) AS n", True),  # each group counts its rows
        ("sum(a.j) AS s, count(*) AS n", "avg(a.j) AS m", False),  # which would count NULLs
        ("sum(a.j) AS s, count(a.id) AS n", "avg(a.j) AS m", False),
        ("sum(a.j) AS s, count(DISTINCT a.j) AS n", "avg(a.j) AS m", False),
        ("sum(a.j) AS s, count(a.j) AS n", "avg(CAST(a.j AS DOUBLE)) AS m", False),  # a sum of others
        ("sum(a.j) AS s, count(a.j) FILTER (WHERE a.id > 1) AS n", "avg(a.j) AS m", False),
        ("min(a.j) AS m", "max(a.j) AS m", False),
        ("min(a.j) AS m", "sum(a.j) AS m", False),
    ],
)
def test_aggregates_that_are_computed_from_others(
    tmp_path: Path, stored: str, asked: str, goes_on: bool
) -> None:
    """They go on if all that they are computed from is kept, of the same values in the same type."""
    before = plan_of(job(tmp_path, GROUPS.format(stored, "")))
    begin(tmp_path, before)
    after = plan_of(job(tmp_path, GROUPS.format(asked, "")))
    assert (as_json(after) == as_json(before)) is goes_on
    assert (FROM_KEPT in explain(after)) is goes_on
    assert explain(plan_of(job(tmp_path, GROUPS.format(stored, "")))) == explain(before)


def test_rows_that_come_out_at_once_do_not_wait_for_a_count(tmp_path: Path) -> None:
    """Groups without aggregates are out before they are final."""
    before = plan_of(final(tmp_path, "SELECT id FROM a GROUP BY id"))
    begin(tmp_path, before)
    after = plan_of(final(tmp_path, "SELECT id, count(*) AS n FROM a GROUP BY id"))
    assert compare(as_json(before), as_json(after))


@pytest.mark.parametrize(
    "sql",
    [
        GROUPS.format("min(a.j) AS s", ""),  # nobody has counted it
        GROUPS.format("count(*) AS n, avg(a.j) AS s", ""),
        f"{GROUPS.format(CALLS[1], '')} HAVING count(*) > 1",  # of rows that came out nobody knows which would not have
        "SELECT a.id, count(*) AS n FROM a GROUP BY a.id",
    ],
)
def test_other_groups_are_refused(tmp_path: Path, sql: str) -> None:
    """In the words in which they always were."""
    before = plan_of(job(tmp_path, GROUPS.format(ALL, "")))
    begin(tmp_path, before)
    after = plan_of(job(tmp_path, sql))
    assert (
        "the groups, their aggregates, HAVING or output.mode were different"
        in compare(as_json(before), as_json(after))[0]
    )
    assert KEPT not in explain(after)


@pytest.mark.parametrize("source", "ab")
def test_of_several_groups_by_the_same_keys(tmp_path: Path, source: str) -> None:
    """Each finds its own: the fewest aggregates that its inputs have, and that hold what it asks for."""

    def both(one: str, other: str) -> Pipeline:
        spec = fields(tmp_path, "SELECT id FROM a") | {
            "outputs": {
                "x": {"sql": f"SELECT {one} FROM a", "mode": "changelog", "noop": {}},
                "y": {"sql": f"SELECT {other} FROM {source}", "mode": "changelog", "noop": {}},
            }
        }
        del spec["sql"], spec["output"]
        return plan_of(written(spec, tmp_path), after=before)

    before: Pipeline | None = None
    before = both("count(*) AS n, sum(j) AS s", "min(j) AS least, max(j) AS most")
    assert compare(as_json(before), as_json(both("sum(j) AS s", "max(j) AS most"))) == []
    assert compare(as_json(before), as_json(both("count(*) AS n", "max(j) AS most"))) == []
    before = None
    before = both("count(*) AS n", "max(j) AS most, count(*) AS n")
    assert compare(as_json(before), as_json(both("count(*) AS n", "max(j) AS most"))) == []


def test_having_of_groups_that_come_out_once(tmp_path: Path) -> None:
    """It may change where they are the result, and not where another stage has stored some of them."""
    own = "SELECT id, sum(j) AS s, count(*) AS n FROM a GROUP BY id{}"
    nested = (
        "SELECT t.id, b.k FROM (SELECT id, window_end, count(*) AS n FROM TUMBLE(a, at, INTERVAL '1' MINUTE)"
        " GROUP BY id, window_end{}) t JOIN b ON t.id = b.id"
    )
    for sql, goes_on in ((own, True), (nested, False)):
        before, after = (
            plan_of(final(tmp_path, sql.format(having)))
            for having in (" HAVING count(*) > 1", " HAVING count(*) > 2")
        )
        assert (compare(as_json(before), as_json(after)) == []) is goes_on


def final(folder: Path, sql: str) -> StreamJoin:
    """A job whose windows come out once."""
    given = fields(folder, "SELECT id FROM a")
    timed = {"schema": f"{SCHEMA}, at TIMESTAMP", "eventTime": {"column": "at", "delay": "1s"}}
    given["inputs"] = {name: {**one, **timed} for name, one in given["inputs"].items()}
    return written(given | {"sql": sql, "output": {"mode": "append", "noop": {}}}, folder)


def fields(folder: Path, sql: str) -> dict[str, Any]:
    """What a file of such a job has."""
    return dict(job(folder, sql).model_dump(mode="json", by_alias=True, exclude_defaults=True)["spec"])


BETWEEN = {
    "groups": "SELECT t.s, b.id FROM (SELECT k, sum(j) + {} AS s FROM a GROUP BY k) t JOIN b ON t.k = b.k",
    "groups of joined rows": (
        "SELECT t.s, c.id FROM (SELECT a.k, max(a.j + b.j) + {} AS s FROM a JOIN b ON a.id = b.id GROUP BY a.k) t"
        " JOIN c ON t.k = c.k"
    ),
    "groups of groups": "SELECT k, sum(s) AS s FROM (SELECT k, max(j) + {} AS s FROM a GROUP BY id, k) GROUP BY k",
    "a join": (
        "WITH t AS (SELECT a.k, a.j + {} * b.j AS s FROM a JOIN b ON a.id = b.id)"
        " SELECT t.s, x.s AS xs FROM t JOIN t x ON t.k = x.k"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_what_another_stage_reads_may_not_change(tmp_path: Path, name: str) -> None:
    """It is stored there; of a checkpoint that does not say what it was, nothing else is asked for."""
    old, new = (as_json(plan_of(job(tmp_path, BETWEEN[name].format(n)))) for n in "12")
    assert any("which another stage reads, was" in why for why in compare(old, new))
    for stage in old["stages"]:
        stage.pop("select", None)
    assert compare(old, as_json(plan_of(job(tmp_path, BETWEEN[name].format("1"))))) == []


def test_without_a_checkpoint(tmp_path: Path) -> None:
    """A plan that would go on from another one's state is compared with that."""
    before = plan_of(job(tmp_path, f"SELECT a.id, b.note {ONE}"))
    after = plan_of(job(tmp_path, f"SELECT a.id {ONE}"), after=before)
    assert compare(as_json(before), as_json(after)) == []


def test_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The plain plan; the run says what is wrong with the file."""
    (tmp_path / "checkpoint").mkdir()
    for text in ("", "{}", '{"plan": 3}', json.dumps({"plan": {"inputs": [{}]}})):
        (tmp_path / "checkpoint" / "streamjoin.json").write_text(text)
        assert KEPT not in explain(plan_of(job(tmp_path, f"SELECT a.id {ONE}")))


@pytest.mark.parametrize("source", [ONE, THREE, "FROM a LEFT JOIN b ON a.k = b.k"])
def test_a_further_condition_is_decided_after_the_joins(tmp_path: Path, source: str) -> None:
    """On columns that are stored; it stays there when the job starts again, and goes as it came."""
    plain = f"SELECT a.id, a.note, b.note AS bn {source}"
    before = plan_of(job(tmp_path, plain))
    begin(tmp_path, before)
    for where in (
        " WHERE a.note <> 'x'",
        " WHERE a.note <> 'x' AND (a.id > 3 OR a.note = b.note)",
        " WHERE b.note IS NULL",
        "",
    ):
        after = plan_of(job(tmp_path, plain + where))
        assert compare(as_json(before), as_json(after)) == []
        identify(tmp_path / "checkpoint", "follow", after)
        before = after


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (f"SELECT a.id, a.note {ONE} WHERE a.note <> 'x'", f"SELECT a.id, a.note {ONE}", "the filter of a"),
        (
            f"SELECT a.id {ONE}",
            f"SELECT a.id {ONE} WHERE a.note <> 'x'",
            "the filter of a",
        ),
        (
            "SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k = b.k",
            "SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k = b.k AND a.id < b.id",
            "the condition of the left join",
        ),
        (
            f"SELECT a.id, count(*) AS n {ONE} GROUP BY a.id",
            f"SELECT a.id, count(*) AS n {ONE} WHERE a.id > 3 GROUP BY a.id",
            "the filter of a",
        ),
    ],
)
def test_conditions_by_which_rows_are_stored_are_fixed(tmp_path: Path, old: str, new: str, why: str) -> None:
    """What was left out is not there; what others have stored would not be theirs."""
    before = plan_of(job(tmp_path, old))
    begin(tmp_path, before)
    found = compare(as_json(before), as_json(plan_of(job(tmp_path, new))))
    assert any(why in one for one in found), found


def test_a_query_that_stores_nothing_may_become_another(tmp_path: Path) -> None:
    before = plan_of(job(tmp_path, "SELECT a.id FROM a"))
    begin(tmp_path, before)
    after = plan_of(job(tmp_path, "SELECT a.id + 1 AS n, a.note FROM a WHERE a.k > 3"))
    assert compare(as_json(before), as_json(after)) == []
