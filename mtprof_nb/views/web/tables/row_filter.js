// Which rows of a table hold a text, or match a regular expression.

/**
 * @import { Rows } from "../types/messages"
 * @typedef {{ text: string, regex: boolean }} Filter
 */

/**
 * Returns a test of a row's position, and what is wrong with an expression that does not compile, which keeps all rows.
 * @param {Rows} rows
 * @param {Filter} filter
 * @returns {{ matches: (row: number) => boolean, problem: string }}
 */
export function rowFilter({ label, detail }, { text, regex }) {
  if (!text) return { matches: () => true, problem: "" };
  /** @param {(text: string) => boolean} holds */
  const either = (holds) => ({
    matches: (/** @type {number} */ row) => holds(label[row]) || holds(detail[row]),
    problem: "",
  });
  if (!regex) {
    const part = text.toLowerCase();
    return either((name) => name.toLowerCase().includes(part));
  }
  try {
    const pattern = new RegExp(text, "i");
    return either((name) => pattern.test(name));
  } catch (error) {
    const message = /** @type {SyntaxError} */ (error).message;
    return { matches: () => true, problem: message.split(": ").pop() ?? "" };
  }
}
