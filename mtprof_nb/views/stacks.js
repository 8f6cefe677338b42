// The stacks tab: icicle or sunburst, sized by what the user chooses.

import { Chart } from "./chart.js";
import { choice, h } from "./dom.js";

const SHAPES = [
  { key: "icicle", title: "Icicle" },
  { key: "sunburst", title: "Sunburst" },
];

/** @param {{ host: HTMLElement, first: any, wire: any, store: any }} context */
export function mount({ host, first, wire, store }) {
  let shown = first;
  let wanted = { metric: first.metric, shape: first.shape };
  let asked = 0;
  const metric = h(
    "select",
    { class: "mtprof-input mtprof-select", "aria-label": "Size by", onchange: () => want({ metric: metric.value }) },
    ...first.metrics.map(({ key, title }) => h("option", { value: key, text: title })),
  );
  const shapes = choice("Shape", SHAPES, first.shape, (shape) => want({ shape }));
  const note = h("span", { class: "mtprof-count", title: first.note });
  const place = h("div", { class: "mtprof-plot mtprof-fill", role: "img", "aria-label": "Stacks: who called whom" });
  host.append(
    h("div", { class: "mtprof-tools" }, shapes, h("label", { class: "mtprof-field" }, h("span", { class: "mtprof-word", text: "by " }), metric), note),
    h("div", { class: "mtprof-stage" }, place),
  );

  const chart = new Chart(place, wire);
  const clicked = ({ points }) => {
    const [event, name] = points[0].customdata ?? [-1, -1];
    if (event >= 0) store.pick(event, name);
  };
  chart.on("plotly_icicleclick", clicked);
  chart.on("plotly_sunburstclick", clicked);

  function want(change) {
    wanted = { ...wanted, ...change };
    // The same slices in the other shape need no answer.
    if (change.shape) reshape(change.shape);
    ask();
  }

  function reshape(shape) {
    const data = shown.picture.data.map((trace) => ({ ...trace, type: shape }));
    shown = { ...shown, picture: { ...shown.picture, data } };
    draw();
  }

  /** While slices mean the same, plotly stays at the one that the user zoomed to. */
  function draw() {
    const { data, layout } = shown.picture;
    return chart.draw({ data, layout: { ...layout, uirevision: shown.metric } });
  }

  async function ask() {
    const number = ++asked;
    const answer = await wire.ask({ tab: "stacks", ask: "chart", ...wanted });
    if (number !== asked) return;
    shown = answer;
    draw();
  }

  wire.onchange(() => {
    const still = wire.silent && !wire.hasPlotly;
    note.textContent = first.note || (still ? "" : "Click to zoom, click the root to go back");
    for (const button of shapes.children) button.disabled = still;
    metric.disabled = wire.silent;
    if (wire.silent) metric.value = shown.metric;
  });

  let stale = false;
  const renew = () => {
    stale = false;
    ask();
  };
  store.onselect(() => (host.hidden ? (stale = true) : renew()));
  draw();
  if (store.selection) renew();
  return {
    restyle: () => chart.restyle(),
    shown: () => (stale ? renew() : chart.restyle()),
    destroy: () => chart.destroy(),
  };
}
