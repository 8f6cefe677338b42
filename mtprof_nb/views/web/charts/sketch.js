// A picture without plotly, for a saved notebook that has no kernel: the same blocks, lines and slices as plain SVG.

import { svg } from "../dom.js";
import { nbytes, timeTicks } from "../format.js";
import { fitted, plain } from "../label.js";

/**
 * @import { BarTrace, CurveTrace, MarkTrace, NameTrace, PeakTrace, Picture, PlanePicture, TreePicture, TreeTrace } from "../types/pictures"
 * @typedef {(value: number) => number} Scale from a value of an axis to a pixel
 */

const FONT = "11px system-ui, sans-serif";
/** Plotly's patterns of the phases, in a square of five pixels. */
const HATCHES = { "/": "M-1,1L1,-1M0,5L5,0M4,6L6,4", "|": "M2.5,0V5", ".": "M2,2.5H3" };
let sketches = 0;

/** @param {Picture} picture @param {number} width @param {number} height */
export function sketch(picture, width, height) {
  const high = picture.layout.height ?? height;
  const parts = isTree(picture) ? icicle(picture.data[0], width, high) : plane(picture, width, high);
  return svg("svg", { width, height: high, class: "mtprof-sketch", role: "img" }, ...parts);
}

/** @param {Picture} picture @returns {picture is TreePicture} */
const isTree = (picture) => !("xaxis" in picture.layout);

/** @param {SVGElement} element @param {string | undefined} label */
function titled(element, label) {
  if (label) element.append(svg("title", { text: plain(label) }));
  return element;
}

/** @param {PlanePicture} picture @param {number} width @param {number} height */
function plane({ data, layout }, width, height) {
  const { l, r, t, b } = layout.margin;
  const [x0, x1] = layout.xaxis.range;
  const [y0, y1] = layout.yaxis.range;
  /** @type {Scale} */
  const x = (value) => l + ((value - x0) / (x1 - x0)) * (width - l - r);
  /** @type {Scale} */
  const y = (value) => height - b - ((value - y0) / (y1 - y0)) * (height - t - b);
  const prefix = `mtprof-sketch-${++sketches}`;
  const inside = [];
  for (const trace of data) {
    if (trace.type === "bar") inside.push(...bars(trace, x, y, Math.abs(y(1) - y(0)), prefix));
    else if (trace.mode === "lines") inside.push(curve(trace, x, y));
    else {
      if (trace.mode !== "text") inside.push(...markers(trace, x, y));
      if (trace.mode !== "markers") inside.push(...texts(trace, x, y));
    }
  }
  // Shapes outside the window must not be drawn over the axes.
  const clip = svg(
    "clipPath",
    { id: prefix },
    svg("rect", { x: l, y: 0, width: Math.max(width - l - r, 0), height: height - b }),
  );
  const parts = [svg("g", { "clip-path": `url(#${prefix})` }, ...inside), svg("defs", {}, clip, ...hatches(prefix))];
  const times = timeTicks(x0, x1, (width - l - r) / 110);
  for (const [at, value] of times.values.entries()) {
    parts.push(label(x(value), height - b + 18, times.text[at], x(value) > width - 24 ? "end" : "middle"));
  }
  const { tickvals, ticktext } = layout.yaxis;
  for (const [at, value] of tickvals.entries()) {
    parts.push(label(l - 8, y(value) + 4, plain(ticktext[at] ?? nbytes(value)), "end"));
  }
  return parts;
}

/** @param {string} prefix */
function hatches(prefix) {
  return Object.values(HATCHES).map((path, at) =>
    svg(
      "pattern",
      { id: `${prefix}-${at}`, width: 5, height: 5, patternUnits: "userSpaceOnUse" },
      svg("path", { d: path, stroke: "#8a9199", "stroke-width": 1 }),
    ),
  );
}

/** @param {BarTrace} trace @param {Scale} x @param {Scale} y @param {number} rows @param {string} prefix */
function bars(trace, x, y, rows, prefix) {
  return trace.base.flatMap((base, at) => {
    const colour = Array.isArray(trace.marker.color) ? trace.marker.color[at] : trace.marker.color;
    const width = Math.max(x(base + trace.x[at]) - x(base), 0);
    const high = (Array.isArray(trace.width) ? trace.width[at] : trace.width) * rows;
    const box = { x: x(base), y: y(trace.y[at]) - high / 2, width, height: high };
    const block = titled(
      svg("rect", { ...box, fill: colour, opacity: trace.marker.opacity?.[at] }),
      trace.hovertext[at],
    );
    const hatch = Object.keys(HATCHES).indexOf(trace.marker.pattern?.shape[at] ?? "");
    return hatch < 0
      ? [block]
      : [block, svg("rect", { ...box, fill: `url(#${prefix}-${hatch})`, "pointer-events": "none" })];
  });
}

/** @param {MarkTrace | PeakTrace} trace @param {Scale} x @param {Scale} y */
function markers(trace, x, y) {
  const half = trace.marker.size / 2;
  const diamond = `m0,${-half}l${half},${half}l${-half},${half}l${-half},${-half}z`;
  const bar = `m0,${-half}v${2 * half}`;
  return trace.x.map((value, at) => {
    const colour = "line" in trace.marker ? trace.marker.line.color[at] : trace.marker.color;
    const shape = svg("path", {
      d: `M${x(value)},${y(trace.y[at])}${trace.marker.symbol === "diamond" ? diamond : bar}`,
      fill: colour,
      stroke: colour,
    });
    return titled(shape, trace.hovertext?.[at]);
  });
}

/** @param {NameTrace | PeakTrace} trace @param {Scale} x @param {Scale} y */
function texts(trace, x, y) {
  const inks = trace.textfont?.color;
  const anchor = trace.textposition?.endsWith("left") ? "end" : trace.textposition ? "start" : "middle";
  const rise = trace.textposition ? -6 : 4;
  return trace.text.map((text, at) => label(x(trace.x[at]), y(trace.y[at]) + rise, plain(text), anchor, inks?.[at]));
}

/** @param {CurveTrace} trace @param {Scale} x @param {Scale} y */
function curve(trace, x, y) {
  let path = `M${x(trace.x[0])},${y(0)}`;
  for (const [at, value] of trace.x.entries()) path += `${at ? `H${x(value)}` : ""}V${y(trace.y[at])}`;
  path += `V${y(0)}Z`;
  return svg("path", { d: path, fill: trace.fillcolor, stroke: trace.line.color, "stroke-width": 1 });
}

/** @param {TreeTrace} trace @param {number} width @param {number} height */
function icicle(trace, width, height) {
  /** @type {Map<string, number[]>} */
  const callees = new Map();
  for (const [at, parent] of trace.parents.entries()) callees.set(parent, [...(callees.get(parent) ?? []), at]);
  /** @type {SVGElement[]} */
  const parts = [];
  /** @param {number} at @param {number} level @param {number} left */
  const place = (at, level, left) => {
    const size = (trace.values[at] / trace.values[0]) * width;
    const rectangle = svg("rect", {
      x: left,
      y: level * 22,
      width: Math.max(size - 1, 0),
      height: 21,
      fill: trace.marker.colors[at],
    });
    parts.push(titled(rectangle, trace.hovertext[at]));
    const name = fitted(plain(trace.labels[at], ""), size - 9, FONT);
    if (name) parts.push(label(left + 4, level * 22 + 15, name, "start", trace.insidetextfont.color[at]));
    const longestFirst = callees.get(trace.ids[at])?.sort((one, other) => trace.values[other] - trace.values[one]);
    let from = left;
    for (const callee of longestFirst ?? []) {
      if ((level + 2) * 22 < height) place(callee, level + 1, from);
      from += (trace.values[callee] / trace.values[0]) * width;
    }
  };
  if (trace.values[0] > 0) place(0, 0, 0);
  return parts;
}

/** @param {number} x @param {number} y @param {string} text @param {string} anchor */
function label(x, y, text, anchor, fill = "currentColor") {
  return svg("text", { x, y, "text-anchor": anchor, "font-size": 11, fill, "pointer-events": "none", text });
}
