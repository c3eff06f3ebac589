"""Asks Spark (in batch, ANSI mode, UTC) for the values that the tests expect, and writes them down as data.

    python -m tests.unit.expr.spark.record [file ...]

Reads cases/*.txt, an expression a line, and writes cases/*.json: the type, and the value for each row of the edges.
Without a file it also records the examples of Spark's own reference: cases/examples.json.
"""

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.unit.expr.spark.edges import ROWS, table
from tests.unit.expr.spark.values import plain_values as values

CASES = Path(__file__).parent / "cases"
REFUSED = "refused"


class Recorder:
    """A session with the table of edges, whole as o and row by row as o0, o1, ..."""

    def __init__(self) -> None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        for name, value in {
            "spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "1",
            "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }.items():  # fmt: skip
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        logging.disable(logging.CRITICAL)  # every error that is expected
        self.rows = len(ROWS)
        self.frame(table()).coalesce(1).createOrReplaceTempView("o")
        for number in range(self.rows):
            self.frame(table(ROWS[number : number + 1])).coalesce(1).createOrReplaceTempView(f"o{number}")

    def frame(self, part: pa.Table) -> DataFrame:
        found = self.spark.createDataFrame(part)
        return found.withColumn("n", found["n"].cast("timestamp_ntz"))

    def asked(self, texts: list[str], source: str = " FROM o") -> dict[str, Any]:
        """Return type and values of expressions; halves them where one fails."""
        names = ", ".join(f"({text}) AS c{i}" for i, text in enumerate(texts))
        try:
            frame = self.spark.sql(f"SELECT {names}{source}")
            kinds = [f.dataType.simpleString() for f in frame.schema]
            found = [values(column) for column in frame.toArrow().columns]
        except (PySparkException, Py4JJavaError, pa.ArrowException, TypeError, ValueError) as error:
            if len(texts) == 1:
                return {texts[0]: self.alone(texts[0], source, error)}
            half = len(texts) // 2
            return self.asked(texts[:half], source) | self.asked(texts[half:], source)
        return {text: {"type": kind, "values": column} for text, kind, column in zip(texts, kinds, found)}

    def alone(self, text: str, source: str, error: Exception) -> Any:
        """Return the values of an expression that fails for some rows: {"error": true} there."""
        if isinstance(error, AnalysisException | TypeError | ValueError) or not source:
            print("refused" if source else "fails", text, str(error)[:150].replace("\n", " "))
            return (
                REFUSED
                if isinstance(error, AnalysisException | TypeError | ValueError)
                else {"type": "", "values": [{"error": True}]}
            )
        found, kind = [], ""
        for number in range(self.rows):
            try:
                frame = self.spark.sql(f"SELECT ({text}) AS c FROM o{number}")
                kind = frame.schema[0].dataType.simpleString()
                found += values(frame.toArrow().column(0))
            except (PySparkException, Py4JJavaError, pa.ArrowException, ValueError):
                found.append({"error": True})
        return {"type": kind, "values": found}

    def examples(self, path: Path) -> None:
        """Write the examples of all functions: those without FROM, by function."""
        found = known(path)
        for (name,) in self.spark.sql("SHOW SYSTEM FUNCTIONS").collect():
            if name in found:
                continue
            lines = "\n".join(r[0] for r in self.spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
            texts = [m[1].strip() for m in re.finditer(r"> SELECT (.*?);\s*$", lines, re.MULTILINE)]
            texts = [t for t in texts if not re.search(r"\bFROM\s+(VALUES|\()|\bOVER\b", t)]
            asked = self.asked(texts, "") if texts else {}
            found[name] = {t: r for t, r in asked.items() if r != REFUSED}
        write(path, {name: of for name, of in found.items() if of})


def main() -> None:
    recorder = Recorder()
    wanted = [CASES / name for name in sys.argv[1:]] or sorted(CASES.glob("*.txt"))
    for path in wanted:
        texts = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        found = known(path.with_suffix(".json"))
        todo = [text for text in texts if text not in found]
        for start in range(0, len(todo), 8):
            found |= recorder.asked(todo[start : start + 8])
            write(path.with_suffix(".json"), {t: found[t] for t in texts if found.get(t, REFUSED) != REFUSED})
    if not sys.argv[1:]:
        recorder.examples(CASES / "examples.json")


def known(path: Path) -> dict[str, Any]:
    """Return what has been recorded; delete the file to ask again."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, found: dict[str, Any]) -> None:
    lines = ",\n".join(
        f" {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in found.items()
    )
    path.write_text("{\n" + lines + "\n}\n")
    print(path.name, len(found))


if __name__ == "__main__":
    main()
