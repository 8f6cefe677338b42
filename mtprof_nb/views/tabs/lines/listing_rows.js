// Elements of the listing of source lines: the head, files, lines with their bars, and the ops of a line.

import { h } from "../../web/dom.js";
import { duration, nbytes, number, share } from "../../web/format.js";
import { shortLocation } from "../../web/label.js";
import { phaseParts } from "../../web/strip.js";

/**
 * @import { CostOfOps, LinesFirst, ListedFile, ListedLine, OpOfLine, Times } from "../../web/types/messages"
 * @typedef {CostOfOps & { line: number | "" }} CostLine a line that ran ops, or what belongs to no line
 * @typedef {Times & Partial<CostOfOps>} Cost
 * @typedef {"time_ns" | "outside_ns" | "total_ns" | "count" | "device_ns" | "bytes" | "median_ns" | "most_ns"} RankKey
 * @typedef {{ title: string, rank: RankKey, text: (cost: Cost) => string, meaning?: string }} LineColumn
 */

/** The columns that have a number other than 0 on any line. @param {LinesFirst} first @returns {LineColumn[]} */
export function lineColumns(first) {
  const lines = [...first.files.flatMap((file) => file.lines), ...first.rest];
  return offeredColumns(first).filter(({ rank }) =>
    lines.some((line) => /** @type {Partial<Cost> | null} */ (line)?.[rank]),
  );
}

/**
 * @param {string} title
 * @param {RankKey} rank
 * @param {LineColumn["text"]} text
 * @param {string} [meaning]
 * @returns {LineColumn}
 */
const column = (title, rank, text, meaning) => ({ title, rank, text, meaning });

/** @param {LinesFirst} first @returns {LineColumn[]} */
function offeredColumns({ outside, whole_ns, memory, has_ranks }) {
  const own = "its own ops, with what they cost backward";
  /** @param {Cost} cost */
  const time = ({ time_ns }) => duration(time_ns);
  /** @param {Cost} cost */
  const outsideOps = ({ outside_ns }) => (outside_ns ? duration(outside_ns) : "–");
  const times =
    outside === null
      ? [column("Self", "time_ns", time, own)]
      : [column("Time", "time_ns", time, `${own}, and the time outside ops`)];
  return [
    ...times,
    column("Share", "time_ns", ({ time_ns }) => share(time_ns, whole_ns), "of the program's time"),
    ...(outside === null ? [] : [column("Outside", "outside_ns", outsideOps, OUTSIDE)]),
    column("Total", "total_ns", ({ total_ns }) => duration(total_ns), "with everything that the line called"),
    column("Ops", "count", ({ count }) => (count === undefined ? "–" : number(count))),
    column("Device", "device_ns", ({ id, device_ns }) => (id === undefined ? "–" : duration(device_ns ?? 0)), DEVICE),
    ...(has_ranks ? RANK_COLUMNS : []),
    ...(memory
      ? [
          column(
            memory.title,
            "bytes",
            ({ bytes }) => (typeof bytes === "number" ? nbytes(bytes) : "–"),
            memory.meaning,
          ),
        ]
      : []),
  ];
}

const OUTSIDE = "time on the line while no op ran: Python code, waiting, input";
const DEVICE = "time of the kernels that its ops launched, also backward; the lower bar, by phase";
const RANK_COLUMNS = [
  column("Median", "median_ns", ({ median_ns }) => duration(median_ns ?? 0), "on half of the ranks it takes less"),
  column("Most", "most_ns", ({ most_ns }) => duration(most_ns ?? 0), "its time on the rank with the most"),
  column("On", "most_ns", ({ most_ns, most_on }) => (most_ns && most_on) || "–", "the rank with the most"),
];

/** The lines with a cost by one column, the largest first; equal ones keep the order of the source.
 * @template {{ line: Partial<Cost> }} Listed
 * @param {Listed[]} lines
 * @param {RankKey} key
 */
export function ranked(lines, key) {
  return lines
    .filter(({ line }) => (line[key] ?? 0) > 0)
    .sort((one, other) => (other.line[key] ?? 0) - (one.line[key] ?? 0));
}

/**
 * The titles of the columns. A click on one ranks the lines by it, a click on the source brings back its order.
 * @param {LineColumn[]} columns
 * @param {(column: LineColumn | null) => void} onrank
 */
export function headRow(columns, onrank) {
  /** @param {string} text @param {string} title @param {LineColumn | null} column */
  const label = (text, title, column) =>
    h("button", {
      type: "button",
      class: "mtprof-line-rank",
      text,
      title,
      onclick: () => onrank(column),
    });
  return h(
    "div",
    { class: "mtprof-line mtprof-line-head", role: "row" },
    h("div", { role: "columnheader", class: "mtprof-line-at", text: "Line" }),
    h("div", { role: "columnheader", class: "mtprof-line-text" }, label("Source", "In the order of the source", null)),
    h("div", { role: "columnheader" }),
    ...columns.map((column) => {
      const meaning = column.meaning ? `${column.meaning}. ` : "";
      return h(
        "div",
        { class: "mtprof-line-number", role: "columnheader", "data-title": column.title },
        label(column.title, `${meaning}Click to rank the lines by it`, column),
      );
    }),
  );
}

/** @param {ListedFile} file @param {number} whole_ns */
export function fileRow({ title, self_ns, outside_ns }, whole_ns) {
  const times = outside_ns ? `${duration(self_ns)} in ops, ${duration(outside_ns)} outside` : duration(self_ns);
  const spent = ` ${times}, ${share(self_ns + outside_ns, whole_ns)}`;
  const cell = h("div", { role: "gridcell" }, h("b", { text: shortLocation(title), title }), spent);
  return h("div", { class: "mtprof-line-file", role: "row" }, cell);
}

/** @returns {HTMLElement} */
export const gapRow = () => h("div", { class: "mtprof-line-gap", text: "⋯" });

/**
 * A line of source. Only a line that ran ops has a cost to open: see `isCost`.
 * @param {ListedLine | CostLine} line
 * @param {LinesFirst} first
 * @param {LineColumn[]} columns
 */
export function lineRow(line, first, columns, kind = "") {
  const at = h("div", { class: "mtprof-line-at", role: "gridcell", text: String(line.line) });
  const text = h("div", { class: "mtprof-line-text", role: "gridcell", text: line.text, title: line.text.trim() });
  if (line.id === undefined && !line.time_ns && !line.total_ns)
    return h("div", { class: "mtprof-line mtprof-line-free", role: "row" }, at, text);
  const cost = /** @type {Cost} */ (line);
  const numbers = columns.map((column) =>
    h("div", { class: "mtprof-line-number", role: "gridcell", text: column.text(cost) }),
  );
  return h("div", { class: lineClass(cost, first, kind), role: "row" }, at, text, costBar(cost, first), ...numbers);
}

/** @param {ListedLine | CostLine} line @returns {line is CostLine} */
export const isCost = (line) => line.id !== undefined;

/** @param {Cost} cost @param {LinesFirst} first @param {string} kind */
function lineClass({ id, time_ns }, { largest_ns, whole_ns }, kind) {
  const hot = id !== -1 && time_ns === largest_ns ? " mtprof-line-hot" : "";
  if (id !== undefined) return `mtprof-line mtprof-line-cost${hot} ${kind}`;
  return `mtprof-line mtprof-line-free${time_ns >= whole_ns / 100 ? " mtprof-line-busy" : ""}${hot}`;
}

/** Bars of the time on the host and, below it, on devices, by phase. @param {Cost} cost @param {LinesFirst} first */
function costBar(cost, { outside, largest_ns, largest_device_ns }) {
  const times = { ...cost.phases, ...(outside === null ? {} : { [outside]: cost.outside_ns ?? 0 }) };
  const own = phaseBar(times, cost.time_ns / Math.max(largest_ns, 1));
  if (!cost.device_ns) return barCell(own.spoken, own.bar);
  const device = phaseBar(cost.device_phases ?? {}, cost.device_ns / Math.max(largest_device_ns, 1));
  device.bar.classList.add("mtprof-on-device");
  return barCell(`${own.spoken}; on the device: ${device.spoken}`, own.bar, device.bar);
}

/** @param {Record<string, number>} times @param {number} part of the longest bar */
function phaseBar(times, part) {
  const { spoken, parts } = phaseParts(times);
  const width = Math.min(part, 1) * 100;
  return { spoken, bar: h("div", { class: "mtprof-line-bar", style: `width:${width.toFixed(2)}%` }, ...parts) };
}

/** @param {string} spoken @param {HTMLElement[]} bars */
function barCell(spoken, ...bars) {
  const label = spoken || "nothing of its own";
  return h("div", { class: "mtprof-line-bars", role: "gridcell", title: spoken, "aria-label": label }, ...bars);
}

/** @param {OpOfLine} op @param {(event: number, name: number) => void} pick */
export function opEntry(op, pick) {
  if ("more" in op) return h("div", { class: "mtprof-line-op", text: `and ${number(op.more)} more` });
  const cost = `${number(op.count)} ×, ${duration(op.self_ns)}`;
  const name = h("span", { class: "mtprof-line-op-name", text: "parameter" in op ? op.parameter : op.label });
  if ("parameter" in op) return h("div", { class: "mtprof-line-op" }, "parameter ", name, ` ${cost}`);
  const { phase } = op;
  return h(
    "button",
    {
      type: "button",
      class: "mtprof-line-op",
      title: "Find this op in the other tabs",
      onclick: () => pick(op.event, op.name),
    },
    h("span", { class: `mtprof-phase-swatch mtprof-phase-${phase}`, title: phase }),
    name,
    ` ${phase}, ${cost}`,
  );
}
