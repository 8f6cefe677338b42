// Elements of a table: the head with its sort buttons, and the cell of a name.

import { h } from "../dom.js";

/**
 * @import { Family } from "../types/messages"
 * @import { Sort } from "./row_order.js"
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

/**
 * @param {string} label
 * @param {string} fitted what there is room for
 * @param {string} detail
 * @param {string} shortDetail
 * @param {Family} [family]
 */
export function nameCell(label, fitted, detail, shortDetail, family) {
  const swatch =
    family && h("span", { class: "mtprof-swatch", style: `background:${family.colour}`, title: family.title });
  return h(
    "div",
    { class: "mtprof-cell mtprof-in-name", role: "gridcell", title: detail ? `${label}\n${detail}` : label },
    swatch,
    h("span", { class: "mtprof-label", text: fitted }),
    detail ? h("span", { class: "mtprof-detail", text: shortDetail }) : null,
  );
}
