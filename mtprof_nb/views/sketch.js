// A picture without plotly, for a saved notebook that has no kernel: the same blocks, lines and slices as plain SVG.

import { svg } from "./dom.js";
import { nbytes, timeTicks } from "./format.js";

/** @param {{ data: any[], layout: any }} picture */
export function sketch(picture, width, height) {
  const tree = picture.data.find((trace) => trace.type === "icicle" || trace.type === "sunburst");
  const high = picture.layout.height ?? height;
  const parts = tree ? icicle(tree, width, high) : plane(picture, width, high);
  return svg("svg", { width, height: high, class: "mtprof-sketch", role: "img" }, ...parts);
}

/** Plotly's labels are a little HTML; a title has only text. */
function plain(label) {
  return label
    .replace(/<br>/g, "\n")
    .replace(/<\/?b>/g, "")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&");
}

function titled(element, label) {
  if (label) element.append(svg("title", { text: plain(label) }));
  return element;
}

function plane({ data, layout }, width, height) {
  const { l, r, t, b } = layout.margin;
  const [x0, x1] = layout.xaxis.range;
  const [y0, y1] = layout.yaxis.range;
  const x = (value) => l + ((value - x0) / (x1 - x0)) * (width - l - r);
  const y = (value) => height - b - ((value - y0) / (y1 - y0)) * (height - t - b);
  const rows = Math.abs(y(1) - y(0));
  const parts = [];
  for (const trace of data) {
    if (trace.type === "bar") parts.push(...bars(trace, x, y, rows));
    else if (trace.mode === "lines") parts.push(curve(trace, x, y));
    else if (trace.mode.includes("text")) parts.push(...texts(trace, x, y));
  }
  const times = timeTicks(x0, x1, (width - l - r) / 110);
  times.values.forEach((value, at) => parts.push(label(x(value), height - b + 18, times.text[at], "middle")));
  layout.yaxis.tickvals.forEach((value, at) => parts.push(label(l - 8, y(value) + 4, plain(layout.yaxis.ticktext[at] ?? nbytes(value)), "end")));
  return parts;
}

function bars(trace, x, y, rows) {
  return trace.base.map((base, at) => {
    const colour = Array.isArray(trace.marker.color) ? trace.marker.color[at] : trace.marker.color;
    const width = Math.max(x(base + trace.x[at]) - x(base), 0);
    const high = (Array.isArray(trace.width) ? trace.width[at] : trace.width) * rows;
    const place = { x: x(base), y: y(trace.y[at]) - high / 2, width, height: high };
    return titled(svg("rect", { ...place, fill: colour, opacity: trace.marker.opacity?.[at] }), trace.hovertext[at]);
  });
}

function texts(trace, x, y) {
  const ink = (at) => (Array.isArray(trace.textfont?.color) ? trace.textfont.color[at] : "currentColor");
  const anchor = trace.textposition?.endsWith("left") ? "end" : trace.textposition ? "start" : "middle";
  const rise = trace.textposition ? -6 : 4;
  return trace.text.map((text, at) => {
    const written = label(x(trace.x[at]), y(trace.y[at]) + rise, plain(text), anchor);
    written.setAttribute("fill", ink(at));
    return written;
  });
}

function curve(trace, x, y) {
  let path = `M${x(trace.x[0])},${y(0)}`;
  trace.x.forEach((value, at) => (path += `${at ? `H${x(value)}` : ""}V${y(trace.y[at])}`));
  path += `V${y(0)}Z`;
  return svg("path", { d: path, fill: trace.fillcolor, stroke: trace.line.color, "stroke-width": 1 });
}

function icicle(trace, width, height) {
  const callees = new Map();
  trace.parents.forEach((parent, at) => callees.set(parent, [...(callees.get(parent) ?? []), at]));
  const parts = [];
  const place = (at, level, left) => {
    const size = (trace.values[at] / trace.values[0]) * width;
    const rectangle = svg("rect", { x: left, y: level * 22, width: Math.max(size - 1, 0), height: 21, fill: trace.marker.colors[at] });
    parts.push(titled(rectangle, trace.hovertext[at]));
    if (size > 60) {
      const name = plain(trace.labels[at]).slice(0, Math.floor(size / 7));
      parts.push(label(left + size / 2, level * 22 + 15, name, "middle"));
    }
    let from = left;
    for (const callee of (callees.get(trace.ids[at]) ?? []).sort((one, other) => trace.values[other] - trace.values[one])) {
      if ((level + 2) * 22 < height) place(callee, level + 1, from);
      from += (trace.values[callee] / trace.values[0]) * width;
    }
  };
  if (trace.values[0] > 0) place(0, 0, 0);
  return parts;
}

function label(x, y, text, anchor) {
  return svg("text", { x, y, "text-anchor": anchor, "font-size": 11, fill: "currentColor", "pointer-events": "none", text });
}
