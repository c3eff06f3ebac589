"""Every query of every panel and alert, on a Prometheus that watches a real run; every panel, drawn in a real browser."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.dashboards.boards import (
    FILES,
    STEP_S,
    WINDOW_S,
    Query,
    board,
    filled,
    lists,
    opened,
    panels,
    queries,
    rules,
    selectors,
)
from tests.deploy.dashboards.conftest import KEY, Watched
from tests.deploy.dashboards.drawing import Drawn, draw

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLORS = {"purple": "#B877D9"}


def asked(watched: Watched, query: Query) -> list[dict[str, Any]]:
    """The series that Grafana would get."""
    text = filled(query.text, KEY.namespace, KEY.name)
    if not query.instant:
        return watched.prometheus.over(text, watched.begin + WINDOW_S, watched.end, STEP_S)
    now = watched.prometheus.ask("query", query=text, time=watched.end)["result"]
    return [{"metric": series["metric"], "values": [series["value"]]} for series in now]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_query_returns_figures(watched: Watched, file: Path) -> None:
    """No query is refused, and none is empty or only NaN."""
    empty = [
        (query.panel, query.ref)
        for query in queries(file)
        if not any(value != "NaN" for series in asked(watched, query) for _, value in series["values"])
    ]
    assert empty == []


def test_every_alert_is_evaluated_and_reads_series_that_exist(watched: Watched) -> None:
    """Comparisons of a healthy run are empty, so what they compare is asked for."""
    groups = watched.prometheus.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    missing = {
        (rule["alert"], selector)
        for rule in rules()
        for selector in selectors(rule["expr"])
        if not watched.prometheus.now(selector)
    }
    assert missing == set()


def test_hot_keys_show(watched: Watched) -> None:
    """DS of the skewed input is far above that of the even one; half of its rows are of hot keys, none of the other's."""
    job = f'namespace="{KEY.namespace}", streamjoin="{KEY.name}"'
    skew, hot = (
        {series["metric"]["input"]: float(series["value"][1]) for series in found}
        for name in ("input_skew", "hot_key_ratio")
        for found in [watched.prometheus.now(f"avg_over_time(streamjoin_{name}{{{job}}}[30s])")]
    )

    assert skew["views"] > 0.8 > 3 * skew["customers"]
    assert hot["views"] > 0.4 > 0.1 > hot["customers"]


def test_a_rule_for_hot_keys_shows(watched: Watched) -> None:
    """DS of a stream that meets tables, as hashes would have sent it, and as it was sent: less than half."""
    job = f'namespace="{KEY.namespace}", streamjoin="{KEY.name}"'
    found = watched.prometheus.now(f"avg_over_time(streamjoin_route_skew{{{job}}}[30s])")
    skew = {series["metric"]["route"]: float(series["value"][1]) for series in found}

    assert skew["hash"] > 2 * skew["rule"]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: $STREAMJOIN_PICTURES, for who wants to look at them."""
    given = os.environ.get("STREAMJOIN_PICTURES")
    return Path(given) if given else tmp_path_factory.mktemp("pictures")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_panel_draws(watched: Watched, file: Path, pictures: Path, tmp_path: Path) -> None:
    """Colours on canvases, numbers in texts, no error and nothing empty; the picture is there."""
    drawn = {each.panel: each for each in draw(_board(watched, file), tmp_path, file.stem)}
    pictures.mkdir(exist_ok=True, parents=True)
    picture = (tmp_path / file.stem).with_suffix(".png").rename(pictures / f"{file.stem}.png")
    assert picture.stat().st_size > 20_000
    quiet = {panel["id"] for panel in lists(file)}  # perhaps
    assert [each.error for each in drawn.values() if each.error and each.panel not in quiet] == []
    assert [panel["title"] for panel in panels(file) if not _shows(panel, drawn[panel["id"]])] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_panel_without_figures_says_why(file: Path, tmp_path: Path) -> None:
    """As it was written for it, and not that there are no data."""
    drawn = draw(_drawable(file, {}, [], [], 0, 60), tmp_path, file.stem)
    why = {panel["id"]: panel["fieldConfig"]["defaults"]["noValue"] for panel in panels(file)}
    assert {each.panel: each.error for each in drawn} == why


def test_alerts_that_fire_are_listed(tmp_path: Path) -> None:
    """Those that will, too; no others, and none of anybody else."""
    (file,) = (file for file in FILES if lists(file))
    states = {rule["alert"]: "normal" for rule in rules()} | {"StreamJoinLateRows": "firing"}
    states |= {"StreamJoinLagGrows": "pending", "KubePodCrashLooping": "firing"}
    alerts = [{"name": name, "state": state} for name, state in states.items()]
    (panel,) = lists(file)
    drawn = {each.panel: each for each in draw(_drawable(file, {}, [], alerts, 0, 60), tmp_path, file.stem)}
    shown = drawn[panel["id"]].text.removeprefix(panel["title"]).split()
    assert shown == ["StreamJoinLagGrows", "pending", "StreamJoinLateRows", "firing"]


def _shows(panel: dict[str, Any], drawn: Drawn) -> bool:
    if drawn.type in ("timeseries", "heatmap", "state-timeline"):
        return drawn.pixels > 100
    return len(drawn.text) > len(panel["title"]) + 1


def _board(watched: Watched, file: Path) -> dict[str, Any]:
    answers: dict[int, dict[str, Any]] = {}
    marks: list[dict[str, Any]] = []
    colors = {mark["name"]: mark["iconColor"] for mark in board(file)["annotations"]["list"]}
    for query in queries(file):
        series = asked(watched, query)
        if query.number:
            answers.setdefault(query.number, {})[query.ref] = series
        else:
            marks += [_mark(each, colors[query.panel]) for each in series]
    return _drawable(file, answers, marks, _alerts(watched), watched.begin + WINDOW_S, watched.end)


def _drawable(
    file: Path,
    answers: dict[int, dict[str, Any]],
    marks: list[dict[str, Any]],
    alerts: list[dict[str, str]],
    begin: float,
    end: float,
) -> dict[str, Any]:
    return {
        "dashboard": opened(file),
        "answers": answers,
        "alerts": alerts,
        "marks": marks,
        "from": 1000 * begin,
        "to": 1000 * end,
        "step": STEP_S,
        "title": f"{KEY.namespace} / {KEY.name}",
    }


def _alerts(watched: Watched) -> list[dict[str, str]]:
    """Name and state of each, as Grafana calls it."""
    found = [rule for group in watched.prometheus.ask("rules")["groups"] for rule in group["rules"]]
    states = {"inactive": "normal"}
    return [{"name": rule["name"], "state": states.get(rule["state"], rule["state"])} for rule in found]


def _mark(series: dict[str, Any], color: str) -> dict[str, Any]:
    return {"at": 1000 * series["values"][0][0], "color": COLORS[color]}
