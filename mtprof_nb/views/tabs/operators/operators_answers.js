// Answers for the operators on a page without Python: rows of each grouping, sorted and filtered.

import { rowFilter } from "../../web/tables/row_filter.js";
import { sorted } from "../../web/tables/row_order.js";

/**
 * @import { CarriedOperators } from "../../web/types/carried"
 * @import { OperatorRows, OperatorsTable, Question, RowOfEvent } from "../../web/types/messages"
 * @import { PageRows } from "../../web/page/page_rows.js"
 * @typedef {Extract<Question, { tab: "operators" }>} Asked
 */

/** @param {Asked} question @param {CarriedOperators} carried @param {PageRows} rows */
export function answer(question, { tables }, rows) {
  if (question.ask === "lit") return { ids: rows.litBy(question.selected, question.grouping) };
  const table = tables[question.grouping];
  if (question.ask === "rows") return listed(table, question);
  return rowOf(table, rows.rowOf(question.grouping, question.event));
}

/**
 * @param {OperatorsTable} table
 * @param {Extract<Asked, { ask: "rows" }>} question
 * @returns {OperatorsTable}
 */
function listed(table, { sort, descending = true, filter = "", regex = false }) {
  const { rows, columns } = table;
  const isKnown = sort === "label" || columns.some((column) => column.key === sort);
  const key = isKnown ? sort : table.sort;
  const of = columns.find((column) => column.key === key)?.of || key;
  /** @param {string} _ @param {number} row */
  const number = (_, row) => rows.value[of]?.[row] ?? 0;
  const { matches, problem } = rowFilter(rows, { text: filter, regex });
  const order = problem ? [] : sorted({ number }, rows, { key, descending }).filter(matches);
  return { ...table, sort: key, descending, rows: picked(rows, order), found: order.length };
}

/** @param {OperatorsTable} table @param {number} row @returns {RowOfEvent} */
function rowOf({ rows }, row) {
  const position = rows.id.indexOf(row);
  return { row: position < 0 ? -1 : row, rows: picked(rows, position < 0 ? [] : [position]) };
}

/** @param {OperatorRows} rows @param {number[]} order positions @returns {OperatorRows} */
function picked(rows, order) {
  /**
   * @template Item
   * @param {Item[]} column
   */
  const pick = (column) => order.map((at) => column[at]);
  const value = Object.fromEntries(Object.entries(rows.value).map(([key, column]) => [key, pick(column)]));
  const { id, label, detail, family, name } = rows;
  return { id: pick(id), label: pick(label), detail: pick(detail), family: pick(family), name: pick(name), value };
}
