// Elements of a table: the head with its sort buttons, and a row.

import { h } from "../dom.js";

/**
 * @import { Column, Family } from "../types/messages"
 * @import { Sort } from "./row_order.js"
 * @typedef {object} RowContent
 * @property {string} label
 * @property {string} fitted the label as it fits into its column
 * @property {string} detail
 * @property {Family} [family]
 * @property {{ column: Column, text: string, value: number }[]} cells
 * @property {number | null} part of the largest self time, null where shares are not known
 */

/**
 * The head of a column; a click on it sorts.
 * @param {{ key: string, title: string, unit: string, meaning: string }} column
 * @param {Sort} sort
 * @param {() => void} onsort
 */
export function columnHead({ key, title, unit, meaning }, sort, onsort) {
  const is = key === sort.key;
  return h(
    "div",
    {
      class: `mtprof-cell mtprof-in-${unit}`,
      role: "columnheader",
      "aria-sort": is ? (sort.descending ? "descending" : "ascending") : "none",
      title: meaning,
      "data-key": key,
      onclick: onsort,
    },
    h("button", { type: "button", class: "mtprof-sort" }, title),
    h("span", { class: "mtprof-arrow", "aria-hidden": "true", text: is ? (sort.descending ? "▾" : "▴") : "" }),
  );
}

/** @param {RowContent} content */
export function rowCells({ label, fitted, detail, family, cells, part }) {
  const swatch =
    family && h("span", { class: "mtprof-swatch", style: `background:${family.colour}`, title: family.title });
  const name = h(
    "div",
    { class: "mtprof-cell mtprof-in-name", role: "gridcell", title: detail ? `${label}\n${detail}` : label },
    swatch,
    h("span", { class: "mtprof-label", text: fitted }),
    detail ? h("span", { class: "mtprof-detail", text: detail }) : null,
  );
  const numbers = cells.map(({ column, text, value }) => {
    const zero = value === 0 ? " mtprof-nothing" : "";
    const cell = h("div", { class: `mtprof-cell mtprof-in-${column.unit}${zero}`, role: "gridcell", text });
    if (column.unit === "share" && part !== null) {
      cell.style.setProperty("--mtprof-part", part.toFixed(4));
      cell.style.setProperty("--mtprof-heat", family?.colour ?? "var(--mtprof-accent)");
    }
    return cell;
  });
  return [name, ...numbers];
}
