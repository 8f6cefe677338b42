// The ranks tab: who waits for whom, a row for each rank, each step on each rank, and the collectives.

import { h } from "../../web/dom.js";
import { duration, share } from "../../web/format.js";
import { RankMatrix } from "./rank_matrix.js";
import { sorted } from "../../web/tables/row_order.js";
import { Table } from "../../web/tables/table.js";

/**
 * @import { Column, Rows } from "../../web/types/messages"
 * @import { RanksFirst } from "./ranks_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

/** The parts of a rank's time, in the order of its bar. */
const PARTS = ["computing", "communicating", "waiting", "outside"];
/** Bars of more ranks than this take too much room. */
const MOST_BARS = 64;
/** Rows of a table that are in view at once. */
const MOST_IN_VIEW = 9;
const [ROW_PIXELS, HEAD_PIXELS] = [24, 44];

/** @param {TabContext<RanksFirst>} context @returns {TabView} */
export function mount({ host, first, store }) {
  const ranks = listed("Ranks", "Rank", first.columns, first.rows, (row) =>
    store.emit("alone", first.rows.process[row]),
  );
  const calls = listed("Collectives", "Collective", first.collective_columns, first.collectives, () => {});
  const matrix = first.steps && new RankMatrix(host, first.steps, first.rows.label);
  host.append(
    h(
      "div",
      { class: "mtprof-ranks-scroll", tabindex: "0", role: "region", "aria-label": "Ranks" },
      h("p", { class: "mtprof-ranks-sentence", text: first.sentence }),
      ranks.stage,
      ...bars(first),
      ...(matrix ? [title("Steps: the darker, the longer than the step's median"), matrix.element] : []),
      ...(first.collectives.id.length ? [title("Collectives"), calls.stage] : []),
    ),
  );
  return {
    restyle: () => matrix?.draw(),
    shown: () => matrix?.draw(),
    print(isOn) {
      ranks.table.print(isOn);
      calls.table.print(isOn);
      matrix?.print();
    },
    destroy() {
      ranks.table.destroy();
      calls.table.destroy();
      matrix?.destroy();
    },
  };
}

/** @param {string} text */
const title = (text) => h("h4", { class: "mtprof-ranks-head", text });

/**
 * A table that sorts, as high as its rows need, up to a limit.
 * @param {string} label
 * @param {string} nameTitle
 * @param {Column[]} columns
 * @param {Rows} rows
 * @param {(row: number) => void} onopen
 */
function listed(label, nameTitle, columns, rows, onopen) {
  const show = () => table.show(sorted(table, rows, table.sort));
  const table = new Table({ label, nameTitle, onsort: show, onselect: (_, row) => row >= 0 && onopen(row) });
  const height = Math.min(rows.id.length, MOST_IN_VIEW) * ROW_PIXELS + HEAD_PIXELS;
  const stage = h("div", { class: "mtprof-stage mtprof-ranks-stage", style: `height:${height}px` }, table.element);
  table.fill(columns, rows);
  show();
  return { table, stage };
}

/** A bar for each rank: how it divided its time. @param {RanksFirst} first */
function bars({ rows, parts }) {
  if (rows.id.length > MOST_BARS) return [];
  const longest = Math.max(...parts.map((one) => one.reduce((sum, ns) => sum + ns, 0)), 1);
  const keys = PARTS.map((part) => h("span", {}, h("span", { class: `mtprof-rank-swatch mtprof-rank-${part}` }), part));
  return [
    title("Time of each rank"),
    h("div", { class: "mtprof-rank-keys" }, ...keys),
    ...rows.label.map((label, row) => bar(label, parts[row], longest)),
  ];
}

/** @param {string} label @param {number[]} parts @param {number} longest */
function bar(label, parts, longest) {
  const whole = parts.reduce((sum, ns) => sum + ns, 0);
  const spoken = PARTS.map((part, at) => `${part} ${duration(parts[at])} (${share(parts[at], whole)})`).join(", ");
  const pieces = PARTS.map((part, at) =>
    h("div", { class: `mtprof-rank-part mtprof-rank-${part}`, style: `flex-grow:${parts[at]}` }),
  );
  const width = `width:${((100 * whole) / longest).toFixed(2)}%`;
  return h(
    "div",
    { class: "mtprof-rank-row", role: "img", "aria-label": `${label}: ${spoken}`, title: spoken },
    h("span", { class: "mtprof-rank-label", text: label }),
    h("div", { class: "mtprof-rank-track" }, h("div", { class: "mtprof-rank-bar", style: width }, ...pieces)),
  );
}
