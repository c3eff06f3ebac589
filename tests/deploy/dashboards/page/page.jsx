// Draws one dashboard, with the answers that Prometheus gave to its queries, by Grafana's own panels. What each panel drew is
// left in its element (data-panel, data-drew, data-error) for whoever looks at the page without eyes.
import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';
import 'uplot/dist/uPlot.min.css';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme, dateTime } from '@grafana/data';
import { GlobalStyles, PanelChrome, PanelContextProvider, ThemeContext } from '@grafana/ui';
import { frames } from './frames.js';
import { PANELS, listed } from './panels.jsx';

const COLUMN = 64, LINE = 34, GAP = 8;
const { dashboard, answers, alerts, marks, from, to, title } = window.BOARD;
const theme = createTheme({ colors: { mode: 'dark' } });
const range = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
const context = { eventBus: { publish() {}, subscribe: () => ({ unsubscribe() {} }), getStream: () => ({ subscribe: () => ({ unsubscribe() {} }), pipe: () => ({ subscribe: () => ({ unsubscribe() {} }) }) }), removeAllListeners() {}, newScopedBus() { return this; } }, eventsScope: 'page', canAddAnnotations: () => false };

class Guarded extends React.Component {
  state = {};
  static getDerivedStateFromError(error) { return { error }; }
  render() {
    return this.state.error ? <div className="error">{String(this.state.error.stack)}</div> : this.props.children;
  }
}

function Panel({ panel }) {
  const { x, y, w, h } = panel.gridPos;
  const place = { position: 'absolute', left: x * COLUMN + GAP, top: y * LINE + GAP, width: w * COLUMN - GAP, height: h * LINE - GAP };
  if (panel.type === 'row') return <h2 style={place}>{panel.title}</h2>;
  const Drawn = PANELS[panel.type];
  const data = panel.targets ? frames(panel, answers[panel.id] ?? {}, theme) : listed(panel, alerts);
  return (
    <section style={place} data-panel={panel.id} data-type={panel.type}>
      <Guarded>
        <PanelChrome title={panel.title} description={panel.description} width={place.width} height={place.height}>
          {(width, height) => data.length
            ? <Drawn {...{ panel, data, width, height, theme, range, marks }} />
            : <div className="empty">{panel.fieldConfig.defaults.noValue ?? 'No data'}</div>}
        </PanelChrome>
      </Guarded>
    </section>
  );
}

const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h)) * LINE + 3 * GAP;
const root = document.getElementById('root');
root.style.height = `${height + 44}px`;
createRoot(root).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <PanelContextProvider value={context}>
      <h1>{dashboard.title}<small>{title}</small></h1>
      <div style={{ position: 'relative' }}>{dashboard.panels.map((panel) => <Panel key={panel.id} panel={panel} />)}</div>
    </PanelContextProvider>
  </ThemeContext.Provider>
);

// Pixels of a colour: axes and grids are grey.
function coloured(canvas) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 40 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 25) count++;
  }
  return count;
}

function within(inner, outer) {
  const [i, o] = [inner.getBoundingClientRect(), outer.getBoundingClientRect()];
  return i.left >= o.left && i.right <= o.right && i.top >= o.top && i.bottom <= o.bottom;
}

window.addEventListener('load', () => setTimeout(() => {
  for (const section of document.querySelectorAll('[data-panel]')) {
    const canvases = [...section.querySelectorAll('canvas')];
    section.dataset.drew = canvases.length ? canvases.map((canvas) => (within(canvas, section) ? coloured(canvas) : 0)).reduce((a, b) => a + b, 0) : -1;
    section.dataset.text = section.innerText.replace(/\s+/g, ' ');
    const error = section.querySelector('.error, .empty');
    if (error) section.dataset.error = error.innerText;
  }
  document.body.dataset.height = height + 44;
  document.body.dataset.done = 'yes';
}, 1500));
