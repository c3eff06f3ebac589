// Answers of Prometheus as Grafana's data frames, with the panel's field options applied.
import { FieldType, applyFieldOverrides, standardFieldConfigEditorRegistry, toDataFrame } from '@grafana/data';

const PLAIN = ['unit', 'min', 'max', 'decimals', 'color', 'thresholds', 'mappings', 'noValue', 'displayName'];
const CUSTOM = ['drawStyle', 'lineInterpolation', 'lineWidth', 'lineStyle', 'fillOpacity', 'gradientMode', 'showPoints', 'pointSize',
  'spanNulls', 'stacking', 'axisPlacement', 'axisLabel', 'thresholdsStyle', 'hideFrom', 'barAlignment', 'scaleDistribution'];
const option = (path, isCustom) => ({ id: isCustom ? `custom.${path}` : path, path, isCustom, name: path, process: (value) => value, shouldApply: () => true });
standardFieldConfigEditorRegistry.setInit(() => [...PLAIN.map((path) => option(path, false)), ...CUSTOM.map((path) => option(path, true))]);

// What Grafana's panels take where the dashboard is silent.
const SILENT = { drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', showPoints: 'auto',
  pointSize: 5, spanNulls: false, axisPlacement: 'auto', hideFrom: { legend: false, tooltip: false, viz: false },
  scaleDistribution: { type: 'linear' }, stacking: { mode: 'none', group: 'A' } };

export function frames(panel, answers, theme) {
  const data = panel.targets.flatMap(({ refId, legendFormat }) => (answers[refId] ?? []).map((series) => frame(refId, legendFormat, series)));
  const { defaults, overrides } = panel.fieldConfig;
  const fieldConfig = { defaults: { ...defaults, custom: { ...SILENT, ...defaults.custom } }, overrides };
  return applyFieldOverrides({ data, fieldConfig, theme, timeZone: 'utc', replaceVariables: (text) => text });
}

// Where a series was away, there is a gap: Grafana has nothing at the steps between, and draws nothing for NaN.
const STEP = window.BOARD.step;

function frame(refId, legendFormat, { metric, values }) {
  const name = legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '');
  const rows = values.flatMap((row, n) => (n && row[0] - values[n - 1][0] > 1.5 * STEP ? [[values[n - 1][0] + STEP, null], row] : [row]));
  return toDataFrame({
    refId, name,
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map(([time]) => time * 1000), config: {} },
      { name: 'Value', type: FieldType.number, values: rows.map(([, value]) => (Number.isFinite(Number(value ?? NaN)) ? Number(value) : null)), labels: metric, config: { displayNameFromDS: name } },
    ],
  });
}
