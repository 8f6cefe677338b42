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
  const part = text.toLowerCase();
  /** @param {string} name */
  let holds = (name) => name.toLowerCase().includes(part);
  let problem = "";
  if (regex) {
    try {
      const pattern = new RegExp(text, "i");
      holds = (name) => pattern.test(name);
    } catch (error) {
      holds = () => true;
      problem = /** @type {SyntaxError} */ (error).message.split(": ").pop() ?? "";
    }
  }
  return { matches: (row) => holds(label[row]) || holds(detail[row]), problem };
}
