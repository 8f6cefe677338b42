// Rows of a table as CSV, and the clipboard.

import { h } from "../dom.js";
import { csvLine } from "../format.js";

/** @import { Column, Rows } from "../types/messages" */

/** @param {Column[]} columns @param {Rows} rows @param {number[]} order positions of the rows to write */
export function csv(columns, { label, detail, value }, order) {
  const keys = columns.map((column) => column.key).filter((key) => key in value);
  const lines = order.map((row) => csvLine([label[row], detail[row], ...keys.map((key) => value[key][row])]));
  return [csvLine(["name", "detail", ...keys]), ...lines, ""].join("\n");
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission, or on a page that is not secure, the older interface still works.
    const area = h("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
