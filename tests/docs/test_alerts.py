"""Every alert of the chart has its section, with a link to its runbook."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "charts" / "streamjoin" / "alerts.yaml"
PAGE = ROOT / "docs" / "operating" / "alerts.md"


def test_each_alert_has_its_section() -> None:
    """No more and no fewer than there are, each of the severity that the rule has."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    severity = {r["alert"]: r["labels"]["severity"] for group in groups for r in group["rules"]}
    sections = dict(re.findall(r"^## (\w+)\n\n(\w+)\.", PAGE.read_text(), re.MULTILINE))
    assert {name: said.lower() for name, said in sections.items()} == severity


def test_each_section_links_to_its_runbook() -> None:
    """By its own name."""
    for name, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        assert f"runbooks/{name}.md" in text, name
