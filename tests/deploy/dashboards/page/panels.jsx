// One component for each kind of panel. Time series, figures and bars are Grafana's; its heat map and state timeline are not in
// its library, so they are drawn here on its plot.
import { FieldType, VizOrientation, getDisplayValueAlignmentFactors, getFieldDisplayName, getFieldDisplayValues } from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, UPlotChart, UPlotConfigBuilder, VizRepeater } from '@grafana/ui';
import { useMemo } from 'react';

const DAY = { timeZone: 'utc' };

function Lines({ panel, data, width, height, range, marks }) {
  return (
    <TimeSeries frames={data} structureRev={1} width={width} height={height} timeRange={range} legend={panel.options.legend} {...DAY}
      options={panel.options} tweakScale={(scale) => scale} tweakAxis={(axis) => axis}>
      {(config) => { config.addHook('draw', (plot) => drawMarks(plot, marks)); return null; }}
    </TimeSeries>
  );
}

// Annotations: a dashed line and a triangle below it.
function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const { at, color } of marks) {
    const x = plot.valToPos(at, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = 2;
    ctx.setLineDash([5, 5]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x - 6, bbox.top + bbox.height + 8);
    ctx.lineTo(x + 6, bbox.top + bbox.height + 8);
    ctx.fill();
  }
  ctx.restore();
}

function figures({ panel, data, theme }, sparkline) {
  return getFieldDisplayValues({ fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, data, sparkline, ...DAY });
}

function Figure(props) {
  const { panel: { options }, data, width, height, theme } = props;
  const graph = options.graphMode !== 'none';
  return (
    <VizRepeater getValues={() => figures(props, graph)} getAlignmentFactors={getDisplayValueAlignmentFactors} source={data} width={width} height={height}
      renderCounter={1} autoGrid orientation={VizOrientation.Auto}
      renderValue={({ value, width, height, alignmentFactors, count }) => (
        <BigValue value={value.display} sparkline={graph ? value.sparkline : undefined} width={width} height={height} theme={theme} count={count}
          colorMode={options.colorMode} graphMode={options.graphMode} justifyMode="auto" textMode={options.textMode ?? 'auto'} alignmentFactors={alignmentFactors} />
      )} />
  );
}

function Bars(props) {
  const { panel: { options }, data, width, height, theme } = props;
  return (
    <VizRepeater getValues={() => figures(props, false)} getAlignmentFactors={getDisplayValueAlignmentFactors} source={data} width={width} height={height}
      renderCounter={1} itemSpacing={6} minVizHeight={8} maxVizHeight={300} orientation={options.orientation}
      renderValue={({ value, width, height, orientation, alignmentFactors }) => (
        <BarGauge value={value.display} field={value.field} width={width} height={height} orientation={orientation} theme={theme} displayMode={options.displayMode}
          alignmentFactors={alignmentFactors} itemSpacing={6} lcdCellWidth={8} showUnfilled valueDisplayMode="color" />
      )} />
  );
}

const INFERNO = ['#0d0829', '#280b53', '#480b6a', '#65156e', '#82206c', '#9f2a63', '#bc3754', '#d44842', '#e8602d', '#f57d15', '#fc9f07', '#fac228', '#f3e55d', '#fcffa4'];
const LABELS = 70, LEGEND = 24;

function HeatMap({ data, width, height, theme, range }) {
  const rows = series(data);
  const most = Math.max(...rows.flatMap(({ values }) => values.filter(Number.isFinite)), 1e-12);
  const color = (value) => INFERNO[Math.min(INFERNO.length - 1, Math.floor((value / most) * INFERNO.length))];
  const show = rows[0].display;
  const every = Math.ceil(rows.length / ((height - LEGEND) / 18));
  return (
    <>
      <Rowed rows={rows} width={width} height={height - LEGEND} theme={theme} range={range} color={color} gap={0} label={(row, n) => (n % every ? '' : row.name)} />
      <div style={{ display: 'flex', gap: 4, alignItems: 'center', fontSize: 12, height: LEGEND, paddingLeft: LABELS, color: theme.colors.text.secondary }}>
        0 {INFERNO.map((c) => <i key={c} style={{ background: c, width: 12, height: 8 }} />)} {show(most).text}{show(most).suffix}
      </div>
    </>
  );
}

function Spans({ data, width, height, theme, range }) {
  const rows = series(data);
  return <Rowed rows={rows} width={width} height={height} theme={theme} range={range} color={() => theme.visualization.getColorByName('blue')} gap={0.2} label={(row) => row.name} labels={80} />;
}

function series(data) {
  return data.map((frame) => {
    const [time, value] = [frame.fields.find(({ type }) => type === FieldType.time), frame.fields.find(({ type }) => type === FieldType.number)];
    const display = (v) => { const shown = value.display(v); return { text: shown.text, suffix: shown.suffix ?? '' }; };
    return { name: getFieldDisplayName(value, frame, data), times: time.values.map((t) => t / 1000 * 1000), values: value.values, display };
  });
}

// A row for each series, a cell for each value.
function Rowed({ rows, width, height, theme, range, color, gap, label, labels = LABELS }) {
  const [config, data] = useMemo(() => {
    const times = [...new Set(rows.flatMap((row) => row.times))].sort((a, b) => a - b);
    const step = Math.min(...times.slice(1).map((time, n) => time - times[n]), 60000);
    const builder = new UPlotConfigBuilder('utc');
    builder.addScale({ scaleKey: 'x', isTime: true, orientation: 0, direction: 1, range: () => [range.from.valueOf(), range.to.valueOf()] });
    builder.addScale({ scaleKey: 'y', isTime: false, orientation: 1, direction: 1, range: () => [0, rows.length] });
    builder.addAxis({ scaleKey: 'x', isTime: true, placement: 'bottom', timeZone: 'utc', theme, grid: { show: false } });
    builder.addAxis({ scaleKey: 'y', placement: 'left', theme, size: labels, grid: { show: false }, ticks: { show: false },
      splits: () => rows.map((_, n) => n + 0.5), values: () => rows.map(label) });
    builder.addSeries({ scaleKey: 'y', pathBuilder: () => null, theme, lineColor: 'transparent', showPoints: 'never' });
    builder.addHook('draw', ({ ctx, bbox, valToPos }) => {
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      rows.forEach((row, n) => {
        const [top, bottom] = [valToPos(n + 1 - gap / 2, 'y', true), valToPos(n + gap / 2, 'y', true)];
        row.times.forEach((time, i) => {
          if (!Number.isFinite(row.values[i])) return;
          const [left, right] = [valToPos(time - step / 2, 'x', true), valToPos(time + step / 2, 'x', true)];
          ctx.fillStyle = color(row.values[i]);
          ctx.fillRect(Math.floor(left), Math.floor(top), Math.ceil(right) - Math.floor(left), Math.max(1, Math.ceil(bottom) - Math.floor(top) - 1));
        });
      });
      ctx.restore();
    });
    return [builder, [times, times.map(() => null)]];
  }, []);
  return <UPlotChart config={config} data={data} width={width} height={height} timeRange={range} />;
}

// Grafana's list of alerts is not in its library either.
export function listed({ options }, alerts) {
  return alerts.filter(({ name, state }) => name.includes(options.alertName) && options.stateFilter[state]);
}

function Alerts({ data, theme }) {
  return data.map(({ name, state }) => (
    <div key={name} style={{ padding: 6, borderBottom: `1px solid ${theme.colors.border.weak}` }}>
      {name} <b style={{ color: theme.colors[state === 'firing' ? 'error' : 'warning'].text }}>{state}</b>
    </div>
  ));
}

export const PANELS = { timeseries: Lines, stat: Figure, bargauge: Bars, heatmap: HeatMap, 'state-timeline': Spans, alertlist: Alerts };
