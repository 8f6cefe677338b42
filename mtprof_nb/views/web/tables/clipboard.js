// Rows of a table as CSV and as Markdown, and the clipboard.

import { h } from "../dom.js";
import { csvLine, share, writers } from "../format.js";

/** @import { Column, Rows } from "../types/messages" */

/** @param {Column[]} columns @param {Rows} rows @param {number[]} order positions of the rows to write */
export function csv(columns, { label, detail, value }, order) {
  const keys = columns.map((column) => column.key).filter((key) => key in value);
  const lines = order.map((row) => csvLine([label[row], detail[row], ...keys.map((key) => value[key][row])]));
  return [csvLine(["name", "detail", ...keys]), ...lines, ""].join("\n");
}

/**
 * @param {Column[]} columns
 * @param {Rows} rows
 * @param {number[]} order positions of the rows to write
 * @param {Record<string, number>} wholes what shares are shares of
 */
export function markdown(columns, { label, detail, value, text }, order, wholes) {
  /** @param {Column} column @param {number} row */
  const cell = ({ key, unit, of }, row) => {
    if (unit === "text" || unit === "words") return text?.[key]?.[row] ?? "";
    const number = value[unit === "share" ? of : key]?.[row] ?? 0;
    return unit === "share" ? share(number, wholes[of]) : writers[unit](number);
  };
  const lines = order.map((row) => [
    `${code(label[row])} ${code(detail[row])}`.trim(),
    ...columns.map((column) => cell(column, row)),
  ]);
  const rule = ["---", ...columns.map(() => "---:")];
  const table = [["Name", ...columns.map(({ title }) => title)], rule, ...lines];
  return `${table.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;
}

/** A text as code in a table, where it is shown letter by letter, but for a backtick. @param {string} text */
const code = (text) => (text ? `\`${text.replaceAll("`", "'").replaceAll("|", "\\|")}\`` : "");

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
