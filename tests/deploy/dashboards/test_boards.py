"""What is shipped is what is built, and every panel says what it shows, in which unit, of figures that exist."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.exported import metrics as families_of
from joinlib.metric.table import BY_NAME, SERIES
from tests.deploy.chart.conftest import Render, of_kind
from tests.deploy.dashboards import standin
from tests.deploy.dashboards.boards import (
    FILES,
    NAME,
    ROOT,
    board,
    filled,
    lists,
    metrics,
    opened,
    panels,
    queries,
    rules,
    selectors,
)
from tests.deploy.dashboards.conftest import KEY, POLICY, applied
from tests.prometheus import program
from tests.unit.jobs.test_exported import MOMENT, UNITS

UIDS = [f"streamjoin-{name}" for name in ("fleet", "joins", "operator", "overview", "scaling", "skew")]
CHOICES = {"streamjoin-fleet": ["namespace"], "streamjoin-operator": []}  # the others show one job
FOLDED = {  # what many jobs have no series for
    "streamjoin-joins": ["Probe orders of joins of three inputs or more", "Tables"],
    "streamjoin-overview": ["Pods and volumes (from kubelet and kube-state-metrics)"],
    "streamjoin-skew": ["Hot keys of streams that meet tables"],
}
BY_PROMETHEUS = {"ALERTS"}
each = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def test_what_is_checked_in_is_what_is_built() -> None:
    """`dashboards/build` would write nothing."""
    command = [sys.executable, ROOT / "dashboards" / "build", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_uids_stay() -> None:
    """Links and bookmarks go by them."""
    assert [board(file)["uid"] for file in FILES] == UIDS


@each
def test_panels_say_what_they_show(file: Path) -> None:
    """Title, description and unit, and why it may be empty; the source of figures is a variable."""
    for panel in panels(file):
        assert panel["title"], panel["id"]
        assert panel["description"].endswith((".", "?")), panel["title"]
        why = panel["fieldConfig"]["defaults"]["noValue"]
        assert len(why) < 15 if panel["type"] == "stat" else why.endswith("."), panel["title"]
        if panel in lists(file):
            continue
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


@each
def test_panels_are_told_apart(file: Path) -> None:
    """Numbers, titles, references of queries, and places."""
    shown = opened(file)["panels"]
    places = [
        (x, y)
        for panel in shown
        for g in [panel["gridPos"]]
        for x in range(g["x"], g["x"] + g["w"])
        for y in range(g["y"], g["y"] + g["h"])
    ]
    assert len({panel["id"] for panel in shown}) == len(shown)
    assert len({panel["title"] for panel in panels(file)}) == len(panels(file))
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) == 23
    for panel in panels(file):
        targets = panel.get("targets", ())
        assert len({target["refId"] for target in targets}) == len(targets)


@each
def test_variables_choose_the_job(file: Path) -> None:
    """Prometheus, namespace and StreamJoin; each query reads that job's series and no other's. Of all jobs: namespaces."""
    chosen = CHOICES.get(file.stem, ["namespace", "streamjoin"])
    matchers = {0: "", 1: 'namespace=~"$namespace"', 2: 'namespace="$namespace", streamjoin="$streamjoin"'}
    variables = board(file)["templating"]["list"]
    assert [variable["name"] for variable in variables] == ["datasource", *chosen]
    for query in queries(file):
        for selector in selectors(query.text):
            assert matchers[len(chosen)] in selector, query.panel


@each
def test_rows_that_may_have_nothing_to_show_are_folded(file: Path) -> None:
    """Grafana then asks for their series only when somebody opens them."""
    folded = [row["title"] for row in board(file)["panels"] if row["type"] == "row" and row.get("collapsed")]
    assert folded == FOLDED.get(file.stem, [])


def test_quantiles_are_called_as_people_search_them() -> None:
    """By p50, p95 and p99."""
    asked = [target for file in FILES for panel in panels(file) for target in panel.get("targets", ())]
    found = {
        (re.findall(r"^histogram_quantile\(([\d.]+),", target["expr"])[0], target["legendFormat"])
        for target in asked
        if target["expr"].startswith("histogram_quantile")
    }
    assert found == {("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99")}


@each
def test_figures_exist(file: Path) -> None:
    """Every name is in the table of figures, those of variables too; counters are asked for their growth, gauges are not."""
    texts = [query.text for query in queries(file)]
    texts += [json.dumps(variable) for variable in board(file)["templating"]["list"]]
    assert {name for text in texts for name in NAME.findall(text)} <= SERIES.keys()
    for text in (query.text for query in queries(file)):
        for before, name in re.findall(r"(\w*)\(?(streamjoin_\w+)[{\[)]", text):
            grows = SERIES[name].kind != "gauge"
            assert (before in ("rate", "increase")) == grows, text


@cache
def exported() -> set[str]:
    """The metrics of a driver that knows all of its figures, of an operator that has done all of its work, and of Kubernetes."""
    cluster = standin.Cluster(KEY, POLICY, applied())
    for now in range(standin.WAVE_S):  # rows wait, and it decides
        cluster.period(float(now))
    cluster.state = replace(cluster.state, advised=4)
    cluster.metrics.scaling.set_status(KEY, cluster.status())
    families = (
        *families_of(MOMENT, UNITS, 2.0),
        *cluster.metrics.registry.collect(),
        *standin.Kubelet(KEY).collect(),
    )
    told = {sample.name for family in families for sample in family.samples}
    return told | set(BY_NAME["streamjoin_batch_seconds"].series) | BY_PROMETHEUS


@each
def test_what_is_shown_is_exported(file: Path) -> None:
    """By a driver, an operator, kubelet, kube-state-metrics or Prometheus itself; a name in the table alone is nothing."""
    asked = {(query.panel, name) for query in queries(file) for name in metrics(query.text)}
    assert asked
    there = exported()
    assert {(panel, name) for panel, name in asked if name not in there} == set()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ('sum by (a, b) (rate(x_total{a=~"b_c", d="e"}[$__rate_interval]))', {"x_total"}),
        ("topk(3, x / on () group_left (y) (z > 0) or x)", {"x", "z"}),
        ("time() - max(x) and on (instance) w or vector(0)", {"x", "w"}),
        (
            'count(ALERTS{alertname=~"S.*"}) or label_replace(x, "to", "$1", "from", ".*(.{4})")',
            {"ALERTS", "x"},
        ),
    ],
)
def test_metrics_of_a_query(query: str, names: set[str]) -> None:
    """Neither functions, nor words of the language, nor labels."""
    assert metrics(query) == names


def test_lists_of_alerts_have_all_of_ours() -> None:
    """By their common name; those that fire or will soon, of every source of Grafana's."""
    found = [panel for file in FILES for panel in lists(file)]
    assert found
    for panel in found:
        chosen = panel["options"]
        assert all(chosen["alertName"] in rule["alert"] for rule in rules())
        assert {state for state, shown in chosen["stateFilter"].items() if shown} >= {"firing", "pending"}
        assert (chosen["datasource"], chosen["alertInstanceLabelFilter"]) == ("", "")


def test_the_line_is_where_the_alert_looks() -> None:
    """The dashed line on DS, and the threshold of StreamJoinSkewStaysHigh."""
    (alert,) = [rule for rule in rules() if rule["alert"] == "StreamJoinSkewStaysHigh"]
    (panel,) = [p for file in FILES for p in panels(file) if p["title"] == "DS by input"]
    line = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
    assert f"(streamjoin_input_skew[10m])) > {line:g} " in f"{alert['expr']} "


@each
def test_queries_parse(file: Path, tmp_path: Path) -> None:
    """By Prometheus's own parser."""
    rules = [{"record": f"q{n}", "expr": filled(q.text, "n", "s")} for n, q in enumerate(queries(file))]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    command = [program("promtool"), "check", "rules", str(tmp_path / "rules.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_they_lead_to_the_page_of_alerts(render: Render) -> None:
    """Where the chart is told where its pages are; to each other in any case."""
    for given, pages in (
        ({}, []),
        ({"url": "https://git.example/main"}, ["https://git.example/main/docs/operating/alerts.md"]),
    ):
        for one in of_kind(render(documentation=given), "ConfigMap"):
            for text in one["data"].values():
                links = json.loads(text)["links"]
                assert [link["url"] for link in links if link["type"] == "link"] == pages
                assert [link["tags"] for link in links if link["type"] == "dashboards"] == [["streamjoin"]]
    assert (ROOT / "docs" / "operating" / "alerts.md").exists()


def test_the_chart_ships_them(render: Render) -> None:
    """As ConfigMaps that Grafana's sidecar finds, whole; or not at all."""
    maps = [one for one in of_kind(render(), "ConfigMap") if "grafana_dashboard" in one["metadata"]["labels"]]
    shipped = {name: json.loads(text) for one in maps for name, text in one["data"].items()}
    assert shipped == {file.name: board(file) for file in FILES}
    assert {one["metadata"]["annotations"]["grafana_folder"] for one in maps} == {"StreamJoin"}
    assert len({one["metadata"]["name"] for one in maps}) == len(maps)

    assert of_kind(render(dashboards={"enabled": False}), "ConfigMap") == []
    given: dict[str, Any] = {"labels": {"here": "yes"}, "folder": "", "namespace": "grafana"}
    for one in of_kind(render(dashboards=given), "ConfigMap"):
        assert one["metadata"]["namespace"] == "grafana"
        assert one["metadata"]["labels"]["here"] == "yes"
        assert not one["metadata"].get("annotations")
