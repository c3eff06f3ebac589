"""The dashboards as they are shipped, and their queries with the variables filled in."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "streamjoin"
FILES = sorted((CHART / "dashboards").glob("*.json"))
ALERTS = CHART / "alerts.yaml"
WINDOW_S, STEP_S = 10, 1
_WORDS = {"and", "or", "unless", "bool", "sum", "max", "min", "count", "topk"}
NAME = re.compile(r"\bstreamjoin_\w+")


@dataclass(frozen=True)
class Query:
    """One of a panel, or of the marks on all panels (then without a panel)."""

    board: str
    panel: str
    number: int
    ref: str
    text: str
    instant: bool = False


def board(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def opened(file: Path) -> dict[str, Any]:
    """A dashboard all of whose rows are unfolded."""
    found = board(file)
    return found | {"panels": [one for p in found["panels"] for one in (p, *(p.get("panels") or ()))]}


def panels(file: Path) -> list[dict[str, Any]]:
    """Those that show something, also in rows that are folded."""
    return [panel for panel in opened(file)["panels"] if panel["type"] != "row"]


def lists(file: Path) -> list[dict[str, Any]]:
    """Panels for which Grafana asks its sources of alerts, and not with a query."""
    return [panel for panel in panels(file) if panel["type"] == "alertlist"]


def queries(file: Path) -> Iterator[Query]:
    """All of a dashboard, as they are written."""
    for panel in panels(file):
        for target in panel.get("targets", ()):
            instant = bool(target.get("instant"))
            yield Query(file.stem, panel["title"], panel["id"], target["refId"], target["expr"], instant)
    for mark in board(file)["annotations"]["list"]:
        yield Query(file.stem, mark["name"], 0, "", mark["expr"])


def filled(query: str, namespace: str, name: str) -> str:
    """As Grafana sends it."""
    for variable, value in {
        "$namespace": namespace,
        "$streamjoin": name,
        "$__rate_interval": f"{WINDOW_S}s",
        "$__interval": f"{2 * STEP_S}s",
    }.items():
        query = query.replace(variable, value)
    return query


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def metrics(query: str) -> set[str]:
    """The names of all metrics that a query reads, whoever exports them."""
    bare = re.sub(r"\"[^\"]*\"|\{[^}]*\}|\[[^\]]*\]", " ", query)
    bare = re.sub(r"\b(by|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    return set(re.findall(r"(?<![\w.$])[A-Za-z]\w*\b(?!\s*\()", bare)) - _WORDS


def selectors(query: str) -> set[str]:
    """The series that a query reads: names, each with its matchers."""
    return set(re.findall(r"\bstreamjoin_\w+(?:\{[^}]*\})?", query))
