"""How do panels look? One function for each kind of panel; the dashboards use nothing else."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as look
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

Panel = timeseries.Panel | stat.Panel | heatmap.Panel | statetimeline.Panel | bargauge.Panel | build.Panel
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, RED = "green", "#EAB839", "red"
COUNT, ROWS_RATE, BYTES, SECONDS, RATIO, NUMBER = "short", "rowsps", "bytes", "s", "percentunit", "none"
HEIGHT = 8
_STAT_HEIGHT = 4
_MOST_IMPORTANT_FIRST = 3  # as Grafana numbers the orders of its lists of alerts


@dataclass(frozen=True)
class Ask:
    """A query and the names of its series."""

    query: str
    legend: str


@dataclass(frozen=True)
class Missing:
    """Why there may be nothing to show: a word or two in place of a figure, a sentence in place of a graph."""

    word: str
    why: str


@dataclass(frozen=True)
class Row:
    """Panels under a heading, and what is said in place of one that is empty.

    `folded`: closed at first, as many jobs have nothing to show there.
    """

    title: str
    missing: Missing
    panels: Sequence[Panel]
    folded: bool = False


NO_DRIVER = Missing(
    "no driver", "The driver does not run, has just started, or is not scraped by Prometheus."
)
NO_OPERATOR = Missing(
    "no operator", "No operator runs, or Prometheus does not scrape it: see StreamJoinOperatorDown."
)


@dataclass(frozen=True)
class Marks:
    """Annotations: a mark on every time series where the query has a value above 0."""

    name: str
    query: str
    title: str
    text: str
    color: str


def lines(title: str, says: str, unit: str, *asks: Ask, span: int = 12) -> timeseries.Panel:
    """Lines over time, from zero."""
    panel = timeseries.Panel().title(title).description(says).unit(unit).span(span).height(HEIGHT)
    return (
        panel.datasource(SOURCE)
        .targets([_target(ask, n) for n, ask in enumerate(asks)])
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))
        .min(0)
        .line_width(2)
        .fill_opacity(8)
        .show_points(look.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(_legend())
        .tooltip(
            common.VizTooltipOptions().mode(look.TooltipDisplayMode.MULTI).sort(look.SortOrder.DESCENDING)
        )
    )


def stacked(title: str, says: str, unit: str, *asks: Ask, span: int = 12) -> timeseries.Panel:
    """Areas on top of each other: parts of a whole."""
    stack = common.StackingConfig().mode(look.StackingMode.NORMAL).group("A")
    return lines(title, says, unit, *asks, span=span).stacking(stack).fill_opacity(60).line_width(1)


def steps(title: str, says: str, unit: str, *asks: Ask, span: int = 12) -> timeseries.Panel:
    """Lines of what jumps: counts of pods and votes."""
    panel = lines(title, says, unit, *asks, span=span).decimals(0)
    return panel.line_interpolation(look.LineInterpolation.STEP_AFTER)


def limit(panel: timeseries.Panel, *at: tuple[float, str]) -> timeseries.Panel:
    """Dashed lines at values that mean something."""
    style = common.GraphThresholdsStyleConfig().mode(look.GraphTresholdsStyleMode.DASHED)
    return panel.thresholds(_thresholds("transparent", *at)).thresholds_style(style)


def dashed(panel: timeseries.Panel, name: str, color: str) -> timeseries.Panel:
    """One series as a thin dashed line: a bound, not a figure."""
    return panel.override_by_name(
        name,
        [
            model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
            model.DynamicConfigValue("custom.lineWidth", 1),
            model.DynamicConfigValue("custom.fillOpacity", 0),
            model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": color}),
        ],
    )


def broken(panel: timeseries.Panel, pattern: str) -> timeseries.Panel:
    """The series whose names fit as thin dashed lines, each of its own colour."""
    return panel.override_by_regexp(
        f"/{pattern}/",
        [
            model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
            model.DynamicConfigValue("custom.lineWidth", 1),
            model.DynamicConfigValue("custom.fillOpacity", 0),
        ],
    )


def figure(title: str, says: str, unit: str, ask: Ask, *at: tuple[float, str], span: int = 3) -> stat.Panel:
    """One number that is read at a glance, with its recent past; `at`: where it changes colour."""
    return (
        stat.Panel()
        .title(title)
        .description(says)
        .unit(unit)
        .span(span)
        .height(_STAT_HEIGHT)
        .datasource(SOURCE)
        .targets([_target(ask, 0)])
        .thresholds(_thresholds(GREEN if at else "blue", *at))
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .color_mode(look.BigValueColorMode.VALUE)
        .graph_mode(look.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def flag(title: str, says: str, ask: Ask, no: str, yes: str, span: int = 3) -> stat.Panel:
    """0 or 1, in words; 1 is bad."""
    words = {
        "0": model.ValueMappingResult(text=no, color=GREEN, index=0),
        "1": model.ValueMappingResult(text=yes, color=RED, index=1),
    }
    panel = figure(title, says, NUMBER, ask, span=span).mappings([model.ValueMap(options=words)])
    return panel.graph_mode(look.BigValueGraphMode.NONE)


def word(title: str, says: str, ask: Ask, good: Sequence[str], span: int = 3) -> stat.Panel:
    """The name of the series that is there; green where it is a good one."""
    panel = figure(title, says, NUMBER, ask, span=span)
    panel = panel.graph_mode(look.BigValueGraphMode.NONE).text_mode(look.BigValueTextMode.NAME)
    panel = panel.thresholds(_thresholds(YELLOW))
    for name in good:
        color = model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": GREEN})
        panel = panel.override_by_name(name, [color])
    return panel


def named(title: str, says: str, unit: str, ask: Ask, span: int = 8) -> stat.Panel:
    """A figure for each series, below its name."""
    panel = figure(title, says, unit, ask, span=span).height(HEIGHT)
    return panel.graph_mode(look.BigValueGraphMode.NONE).text_mode(look.BigValueTextMode.VALUE_AND_NAME)


def map_of(title: str, says: str, unit: str, ask: Ask, span: int = 12) -> heatmap.Panel:
    """A row for each series, of a stronger colour where it is greater."""
    return (
        heatmap.Panel()
        .title(title)
        .description(says)
        .unit(unit)
        .span(span)
        .height(HEIGHT + 2)
        .datasource(SOURCE)
        .targets([_target(ask, 0)])
        .calculate(False)
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Inferno").steps(64).min(0))
        .cell_values(heatmap.CellValues().unit(unit))
        .y_axis(heatmap.YAxisConfig().axis_placement(look.AxisPlacement.LEFT))
        .show_legend()
        .show_tooltip()
        .cell_gap(0)
    )


def spans(title: str, says: str, ask: Ask, span: int = 12) -> statetimeline.Panel:
    """A bar for each series while it is there: which phase was it when?"""
    shown = {"1": model.ValueMappingResult(text="yes", color="blue", index=0)}
    return (
        statetimeline.Panel()
        .title(title)
        .description(says)
        .unit(NUMBER)
        .span(span)
        .height(HEIGHT)
        .datasource(SOURCE)
        .targets([_target(ask, 0)])
        .mappings([model.ValueMap(options=shown)])
        .show_value(look.VisibilityMode.NEVER)
        .row_height(0.8)
        .fill_opacity(80)
        .line_width(0)
        .merge_values(True)
        .legend(common.VizLegendOptions().show_legend(False))
    )


def ranking(title: str, says: str, unit: str, ask: Ask, span: int = 12) -> bargauge.Panel:
    """The greatest now, as bars."""
    return (
        bargauge.Panel()
        .title(title)
        .description(says)
        .unit(unit)
        .span(span)
        .height(HEIGHT)
        .datasource(SOURCE)
        .targets([_target(ask, 0, instant=True)])
        .min(0)
        .orientation(look.VizOrientation.HORIZONTAL)
        .display_mode(look.BarGaugeDisplayMode.GRADIENT)
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BL_YL_RD))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def alerts(title: str, says: str, named: str, span: int = 12) -> build.Panel:
    """The alerts with this in their names that fire or are about to, those that matter most first.

    Grafana asks its sources of alerts itself, and says itself that there are none.
    """
    states = {"firing": True, "pending": True, "error": True, "noData": False, "normal": False}
    options = {
        "viewMode": "list",
        "groupMode": "default",
        "groupBy": [],
        "maxItems": 20,
        "sortOrder": _MOST_IMPORTANT_FIRST,
        "dashboardAlerts": False,
        "alertName": named,
        "alertInstanceLabelFilter": "",
        "datasource": "",
        "stateFilter": states,
    }
    panel = build.Panel().type("alertlist").title(title).description(says).span(span).height(HEIGHT)
    return panel.options(options).no_value("No alert fires, or is about to.")


def empty(panel: Panel, why: str) -> Panel:
    """A panel that is empty for a reason of its own, not for that of its row."""
    return panel.no_value(why)


def board(
    name: str,
    title: str,
    says: str,
    rows: Sequence[Row],
    marks: Sequence[Marks] = (),
    choices: Sequence[build.QueryVariable] | None = None,
) -> dict[str, Any]:
    """A dashboard, as the JSON that Grafana reads. Its uid stays: links and bookmarks go by it.

    `choices`: what a reader chooses besides the Prometheus; by default one job.
    """
    made = (
        build.Dashboard(f"StreamJoin / {title}")
        .uid(f"streamjoin-{name}")
        .description(says)
        .tags(["streamjoin"])
        .readonly()
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(_others())
    )
    made = made.with_variable(build.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    for choice in one_job() if choices is None else choices:
        made = made.with_variable(choice)
    numbers = itertools.count(1)
    for row in rows:
        heading = build.Row(row.title).id(next(numbers))
        panels = [_excused(panel, row.missing).id(next(numbers)) for panel in row.panels]
        for panel in panels if row.folded else ():
            heading = heading.with_panel(panel)
        made = made.with_row(heading)
        for panel in () if row.folded else panels:
            made = made.with_panel(panel)
    dashboard = made.build().to_json()
    dashboard["annotations"] = {"list": [_annotation(mark) for mark in marks]}
    return dashboard


def some_namespaces() -> tuple[build.QueryVariable, ...]:
    """Choose namespaces, at first all."""
    namespaces = _choice("namespace", "Namespace", "label_values(streamjoin_job_phase, namespace)")
    return (namespaces.multi(True).include_all(True).all_value(".*"),)


def one_job() -> tuple[build.QueryVariable, ...]:
    """Choose a namespace, and a StreamJoin of it."""
    return (
        _choice("namespace", "Namespace", "label_values(streamjoin_batches_total, namespace)"),
        _choice(
            "streamjoin",
            "StreamJoin",
            'label_values(streamjoin_batches_total{namespace="$namespace"}, streamjoin)',
        ),
    )


def _choice(name: str, label: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )


def _excused(panel: Panel, missing: Missing) -> Panel:
    if panel.build().field_config.defaults.no_value:
        return panel
    return panel.no_value(missing.word if isinstance(panel, stat.Panel) else missing.why)


def _others() -> build.DashboardLink:
    link = build.DashboardLink("StreamJoin").type(model.DashboardLinkType.DASHBOARDS).tags(["streamjoin"])
    return link.keep_time(True).include_vars(True)


def _annotation(mark: Marks) -> dict[str, Any]:
    """The models know no more of an annotation than its name; the rest is as Grafana's Prometheus source
    reads it.
    """
    return {
        "name": mark.name,
        "datasource": SOURCE.to_json(),
        "enable": True,
        "iconColor": mark.color,
        "expr": mark.query,
        "titleFormat": mark.title,
        "textFormat": mark.text,
        "step": "15s",
        "useValueForTime": False,
    }


def _target(ask: Ask, number: int, instant: bool = False) -> prometheus.Dataquery:
    query = prometheus.Dataquery().expr(ask.query).legend_format(ask.legend).ref_id(chr(ord("A") + number))
    return query.instant() if instant else query.range()


def _thresholds(base: str, *at: tuple[float, str]) -> build.ThresholdsConfig:
    steps = [model.Threshold(value=None, color=base), *(model.Threshold(value=v, color=c) for v, c in at)]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def _legend() -> common.VizLegendOptions:
    legend = common.VizLegendOptions().show_legend(True).display_mode(look.LegendDisplayMode.LIST)
    return legend.placement(look.LegendPlacement.BOTTOM)
