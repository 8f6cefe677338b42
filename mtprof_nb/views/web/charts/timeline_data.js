// Plotly's traces of a timeline: dimmed for a selection, without names that do not fit, bars at their true width.

/**
 * @import { BarTrace, MarkTrace, NameTrace, PlaneTrace } from "../types/pictures"
 * @import { BoundElement, Plotted } from "../types/surroundings"
 */

/**
 * The traces without names: names were cut for a width, and in a narrower chart would run into each other.
 * @param {PlaneTrace[]} data
 */
export const withoutNames = (data) => data.filter((trace) => trace.type === "bar" || trace.mode !== "text");

/**
 * Dims blocks whose longest event has another name than the selected one. As in Python's pictures, only lit blocks are
 * named. Without Python, the other events of a block are not known.
 * @param {PlaneTrace[]} data
 * @param {number} selected position of the name, -1 for none
 * @param {number} strength how much of its colour a dimmed block keeps
 */
export function dimmed(data, selected, strength) {
  const events = /** @type {BarTrace | undefined} */ (data.find((trace) => "customdata" in trace));
  if (selected < 0 || !events?.customdata) return data;
  const { base, x: length, y: middle } = events;
  const lit = events.customdata.map(([, name]) => name === selected);
  /** @param {number} x @param {number} y */
  const inLit = (x, y) =>
    lit.some((is, at) => is && base[at] <= x && x <= base[at] + length[at] && Math.abs(middle[at] - y) < 0.5);
  return data.map((trace) => {
    if (trace === events)
      return { ...trace, marker: { ...trace.marker, opacity: lit.map((is) => (is ? 1 : strength)) } };
    if (trace.name.startsWith("phase")) return trace;
    const points = /** @type {NameTrace | MarkTrace} */ (trace);
    const kept = points.x.map((x, at) => inLit(x, points.y[at]));
    return pointsOf(points, kept);
  });
}

/**
 * A trace of names, or of marks, with the points that are kept.
 * @param {NameTrace | MarkTrace} trace
 * @param {boolean[]} kept
 * @returns {NameTrace | MarkTrace}
 */
function pointsOf(trace, kept) {
  /**
   * @template Item
   * @param {Item[]} column
   */
  const some = (column) => column.filter((_, at) => kept[at]);
  const [x, y] = [some(trace.x), some(trace.y)];
  if (trace.mode === "markers") {
    const line = { ...trace.marker.line, color: some(trace.marker.line.color) };
    return { ...trace, x, y, marker: { ...trace.marker, line } };
  }
  const textfont = { ...trace.textfont, color: some(trace.textfont.color ?? []) };
  return { ...trace, x, y, text: some(trace.text), textfont };
}

/** Gives every bar its true width: plotly makes thin bars a pixel wide. @param {Plotted} plot */
export function trueWidths(plot) {
  const { xaxis, yaxis } = plot._fullLayout;
  /** @param {number} value */
  const x = (value) => ((value - xaxis.range[0]) / (xaxis.range[1] - xaxis.range[0])) * xaxis._length;
  /** @param {number} value */
  const y = (value) => ((value - yaxis.range[1]) / (yaxis.range[0] - yaxis.range[1])) * yaxis._length;
  /** @type {NodeListOf<BoundElement>} */
  const groups = plot.querySelectorAll(".barlayer .trace.bars");
  groups.forEach((group) => {
    const trace = plot.data[group.__data__?.[0]?.trace?.index ?? -1];
    if (!trace) return;
    /** @type {NodeListOf<BoundElement>} */
    const points = group.querySelectorAll("g.point");
    for (const point of points) {
      const at = point.__data__?.i ?? -1;
      const high = (Array.isArray(trace.width) ? trace.width[at] : trace.width) / 2;
      const [left, right] = [x(trace.base[at]), x(trace.base[at] + trace.x[at])];
      const [top, bottom] = [y(trace.y[at] - high), y(trace.y[at] + high)];
      point.querySelector("path")?.setAttribute("d", `M${left},${top}V${bottom}H${right}V${top}Z`);
    }
  });
}
