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

function frame(refId, legendFormat, { metric, values }) {
  const name = legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '');
  return toDataFrame({
    refId, name,
    fields: [
      { name: 'Time', type: FieldType.time, values: values.map(([time]) => time * 1000), config: {} },
      { name: 'Value', type: FieldType.number, values: values.map(([, value]) => Number(value)), labels: metric, config: { displayNameFromDS: name } },
    ],
  });
}
