// The stacks tab: icicle or sunburst, sized by what the user chooses.

import { Chart } from "./chart.js";
import { choice, h, latest, settled } from "../dom.js";
import { escaped, fitted, plain } from "../label.js";
import { colours } from "../theme.js";

/**
 * @import { StackChart, StacksFirst } from "../types/messages"
 * @import { TreeLayout, TreeShape, TreeTrace } from "../types/pictures"
 * @import { ClickedPoint, Plotted, TabContext, TabView } from "../types/surroundings"
 */

/** @type {{ key: TreeShape, title: string }[]} */
const SHAPES = [
  { key: "icicle", title: "Icicle" },
  { key: "sunburst", title: "Sunburst" },
];
const FONT_PIXELS = 11;
/** Pixels that plotly leaves free beside a name. */
const INSET = 10;
/** @param {TreeLayout} layout */
const margins = ({ margin }) => margin.l + margin.r;

/** @param {TabContext<StacksFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  /** @type {StackChart} */
  let shown = first;
  let wanted = { metric: first.metric, shape: first.shape };
  const metric = h(
    "select",
    { class: "mtprof-input mtprof-select", "aria-label": "Size by", onchange: () => want({ metric: metric.value }) },
    ...first.metrics.map(({ key, title }) => h("option", { value: key, text: title })),
  );
  const shapes = choice("Shape", SHAPES, first.shape, (shape) => want({ shape }));
  const note = h("span", { class: "mtprof-count", title: first.note });
  const plot = h("div", { class: "mtprof-plot mtprof-fill", role: "img", "aria-label": "Stacks: who called whom" });
  host.append(
    h(
      "div",
      { class: "mtprof-tools" },
      shapes,
      h("label", { class: "mtprof-field" }, h("span", { class: "mtprof-word", text: "by " }), metric),
      note,
    ),
    h("div", { class: "mtprof-stage" }, plot),
  );

  const chart = new Chart(plot, wire);
  /** @param {{ points: ClickedPoint[] }} event */
  const clicked = ({ points }) => {
    const [event, name] = points[0].customdata ?? [-1, -1];
    if (event >= 0) store.pick(event, name);
  };
  chart.on("plotly_icicleclick", clicked);
  chart.on("plotly_sunburstclick", clicked);
  // Slices are wider now, or narrower.
  chart.on("plotly_animated", () => draw());

  /** @param {{ metric?: string, shape?: TreeShape }} change */
  function want(change) {
    wanted = { ...wanted, ...change };
    // The same slices in the other shape need no answer.
    if (change.shape) reshape(change.shape);
    ask();
  }

  /** @param {TreeShape} shape */
  function reshape(shape) {
    const data = shown.picture.data.map((trace) => ({ ...trace, type: shape }));
    shown = { ...shown, picture: { ...shown.picture, data } };
    draw();
  }

  /** While slices mean the same, plotly stays at the one that the user zoomed to. */
  function draw() {
    const { data, layout } = shown.picture;
    // Names of an icicle are cut to fit, so that none need be smaller for another's sake.
    const uniformtext =
      data[0].type === "icicle" ? { ...layout.uniformtext, minsize: FONT_PIXELS } : layout.uniformtext;
    const styled = data.map((trace) => withFittingNames(trace, plot, shown.metric, chart.width - margins(layout)));
    return chart.draw({ data: styled, layout: { ...layout, uniformtext, uirevision: shown.metric } });
  }

  const askLatest = latest(() => wire.ask({ tab: "stacks", ask: "chart", ...wanted, selected: store.selected }));
  async function ask() {
    const answer = await askLatest();
    if (!answer) return;
    shown = answer;
    draw();
  }

  wire.onchange(() => {
    const still = wire.silent && !wire.hasPlotly;
    note.textContent = first.note || (still ? "" : "Click to zoom, click the root to go back");
    for (const button of shapes.querySelectorAll("button")) button.disabled = still;
    metric.disabled = wire.silent;
    if (wire.silent) metric.value = shown.metric;
  });

  let stale = false;
  const renew = () => {
    stale = false;
    ask();
  };
  store.onselect(() => {
    if (host.hidden) stale = true;
    else renew();
  });
  draw();
  if (store.selection) renew();
  const observer = new ResizeObserver(settled(() => host.hidden || draw(), 200));
  observer.observe(plot);
  return {
    restyle: () => draw(),
    shown: () => (stale ? renew() : draw()),
    destroy: () => {
      observer.disconnect();
      chart.destroy();
    },
  };
}

/**
 * A trace in the colours of the page, with names that fit: plotly leaves a name out where it is a little too long.
 * @param {TreeTrace} trace
 * @param {HTMLElement} plot
 * @param {string} metric
 * @param {number} width of the plot, in pixels
 */
function withFittingNames(trace, plot, metric, width) {
  const theme = colours(plot);
  const marker = { ...trace.marker, line: { ...trace.marker.line, color: theme.paper } };
  const names = trace.labels.map((label) => plain(label, ""));
  if (trace.type !== "icicle") return { ...trace, marker, text: names.map(escaped), textinfo: "text" };
  const drawn = /** @type {Plotted} */ (plot)._fullData?.[0];
  const top = Math.max(drawn?.uirevision === metric ? trace.ids.indexOf(drawn.level) : 0, 0);
  const scale = width / trace.values[top];
  const font = `${FONT_PIXELS}px ${theme.font}`;
  const text = names.map((name, at) =>
    escaped(fitted(name, Math.min(trace.values[at], trace.values[top]) * scale - INSET, font)),
  );
  return { ...trace, marker, text, textinfo: "text" };
}
