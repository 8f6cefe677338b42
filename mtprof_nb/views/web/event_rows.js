// Rows that select events, and what is paired with rows.

import { firstWhere } from "./first_where.js";

/**
 * @import { EventRows, Pairs } from "./types/carried"
 * @import { Rows } from "./types/messages"
 */

/** The row that selects an event, -1 for none. @param {EventRows} rows @param {number} wanted */
export function rowOf({ event, row }, wanted) {
  const at = firstWhere(0, event.length, (position) => event[position] >= wanted);
  return event[at] === wanted ? row[at] : -1;
}

/** The lines, or slices, of chosen rows. @param {Pairs} pairs @param {Set<number>} chosen */
export const ofRows = ({ row, of }, chosen) => new Set(of.filter((_, at) => chosen.has(row[at])));

/** The rows of a line. @param {Pairs} pairs @param {number} line */
export const rowsOf = ({ row, of }, line) => row.filter((_, at) => of[at] === line);

/** The ids of a module and its submodules. @param {Pick<Rows, "id" | "label">} rows @param {number} module its position */
export const withSubmodules = ({ id, label }, module) =>
  id.filter((_, at) => at === module || label[at].startsWith(`${label[module]}.`));
