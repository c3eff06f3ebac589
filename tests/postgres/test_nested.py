"""Changes of a nested query in a table: its rows are the query's answer, replaced and deleted by key."""

from collections import Counter

import pytest

from tests.postgres.database import Database
from tests.spark.nested import ANSWER, SQL, fill
from tests.spark.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_the_table_is_the_answer(database: Database, trial: Trial) -> None:
    database.execute("CREATE TABLE nested (s text PRIMARY KEY, n bigint, v bigint)")
    fill(trial)
    trial.run(
        SQL, output={"mode": "upsert", "key": ["s"], "postgres": {**database.fields, "table": "nested"}}
    )
    found = database.execute("SELECT s, n, v FROM nested")
    assert found is not None
    assert Counter(zip(*(c.to_pylist() for c in found.columns), strict=True)) == ANSWER
