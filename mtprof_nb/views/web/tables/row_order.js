// The order of a table's rows.

/**
 * @import { Rows } from "../types/messages"
 * @typedef {{ key: string, descending: boolean }} Sort
 */

/**
 * Positions of the rows by one column; ties by name.
 * @param {{ number(column: string, row: number): number }} table
 * @param {Rows} rows
 * @param {Sort} sort
 */
export function sorted(table, rows, { key, descending }) {
  const turn = descending ? -1 : 1;
  /** @param {number} one @param {number} other */
  const named = (one, other) =>
    rows.label[one] < rows.label[other] ? -1 : rows.label[one] > rows.label[other] ? 1 : 0;
  const order = rows.label.map((_, row) => row);
  if (key === "label") return order.sort((one, other) => turn * named(one, other));
  const texts = rows.value[key] ? undefined : rows.text?.[key];
  if (texts) return order.sort((one, other) => turn * texts[one].localeCompare(texts[other]) || named(one, other));
  // Of two values without end the difference is NaN, which counts as a tie.
  return order.sort((one, other) => turn * (table.number(key, one) - table.number(key, other)) || named(one, other));
}
