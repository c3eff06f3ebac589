"""Each alert fires when it should and keeps quiet when it should, and somebody who is woken by it finds what to do."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib.metric.table import SERIES
from tests.deploy.chart.conftest import Render, of_kind
from tests.deploy.dashboards.boards import ALERTS, CHART, FILES, NAME, ROOT, panels, rules
from tests.prometheus import program

CASES = Path(__file__).parent / "alerts"
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
each = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])


def promtool(*arguments: str) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_are_valid() -> None:
    """Prometheus takes the file."""
    promtool("check", "rules", str(ALERTS))


@each
def test_fires_when_it_should_and_only_then(rule: dict[str, Any]) -> None:
    """By promtool, on made-up series; there is a case of each kind."""
    file = CASES / f"{rule['alert']}.yaml"
    tests = yaml.safe_load(file.read_text())["tests"]
    expected = [bool(case["exp_samples"]) for test in tests for case in test["promql_expr_test"]]
    assert set(expected) == {True, False}
    promtool("test", "rules", str(file))


@each
def test_has_a_runbook(rule: dict[str, Any]) -> None:
    """A file of its name with the four parts; links in it lead somewhere, panels that it names exist."""
    file = CHART / "runbooks" / f"{rule['alert']}.md"
    text = file.read_text()
    assert text.startswith(f"# {rule['alert']}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert all((file.parent / link).exists() for link in re.findall(r"\]\(([^)]+)\)", text))
    shown = {panel["title"] for board in FILES for panel in panels(board)}
    assert {re.sub(r"\s+", " ", name) for name in re.findall(r"\*\*(.+?)\*\*", text, re.DOTALL)} <= shown


@each
def test_says_whose_it_is(rule: dict[str, Any]) -> None:
    """Severity, summary and description; the names of figures exist."""
    assert rule["labels"]["severity"] in ("warning", "critical")
    of_a_job = "{{ $labels.namespace }}/{{ $labels.streamjoin }}" in rule["annotations"]["summary"]
    assert of_a_job != (rule["alert"] == "StreamJoinOperatorDown")  # which has no job's series to speak of
    assert rule["annotations"]["description"].endswith(".")
    assert set(NAME.findall(rule["expr"])) <= set(SERIES)


def test_no_runbook_and_no_case_is_left_over() -> None:
    """Each belongs to an alert."""
    names = {rule["alert"] for rule in rules()}
    assert {file.stem for file in (CHART / "runbooks").glob("*")} == names
    assert {file.stem for file in CASES.glob("*")} == names


def test_the_chart_ships_them(render: Render) -> None:
    """All of them, unchanged; nothing where the kind may not exist."""
    assert of_kind(render(), "PrometheusRule") == []
    given = {"enabled": True, "labels": {"release": "p"}}
    (rule,) = of_kind(render(prometheusRule=given), "PrometheusRule")
    shipped = [each for group in rule["spec"]["groups"] for each in group["rules"]]

    assert rule["metadata"]["labels"]["release"] == "p"
    assert shipped == rules()


@pytest.mark.parametrize(
    ("given", "place", "suffix"),
    [
        ({"url": "https://git.example/sj/blob/main"}, "https://git.example/sj/blob/main", ".md"),
        ({"url": "https://docs.example/", "suffix": ".html"}, "https://docs.example", ".html"),
    ],
)
def test_each_leads_to_its_runbook(render: Render, given: dict[str, Any], place: str, suffix: str) -> None:
    """Where the chart is told where its pages are, as a forge or the site names them; else no address is made up."""
    (rule,) = of_kind(render(prometheusRule={"enabled": True}, documentation=given), "PrometheusRule")
    shipped = [each for group in rule["spec"]["groups"] for each in group["rules"]]
    pages = {each["alert"]: each["annotations"].pop("runbook_url") for each in shipped}
    folder = f"{place}/{(CHART / 'runbooks').relative_to(ROOT)}"
    assert pages == {each["alert"]: f"{folder}/{each['alert']}{suffix}" for each in rules()}
    assert shipped == rules()


def test_an_address_that_is_none_is_refused(render: Render) -> None:
    """A path would be taken for one of Grafana."""
    with pytest.raises(AssertionError, match="/documentation/url"):
        render(documentation={"url": "docs"})
