// Which rows of a table hold a text, or match a regular expression.

import { searched } from "../search.js";

/**
 * @import { Rows } from "../types/messages"
 * @import { Search } from "../search.js"
 */

/**
 * Returns a test of a row's position, and what is wrong with an expression that does not compile, which keeps all rows.
 * @param {Rows} rows
 * @param {Search} search
 * @returns {{ matches: (row: number) => boolean, problem: string }}
 */
export function rowFilter({ label, detail }, search) {
  const { holds, problem } = searched(search);
  return { matches: (row) => holds(label[row]) || holds(detail[row]), problem };
}
