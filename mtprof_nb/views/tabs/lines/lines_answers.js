// Answers for the lines on a page without Python: the ops of each line, and the lines of a selection.

/**
 * @import { CarriedLines } from "../../web/types/carried"
 * @import { Question } from "../../web/types/messages"
 * @import { PageRows } from "../../web/page/page_rows.js"
 * @typedef {Extract<Question, { tab: "lines" }>} Asked
 */

/** @param {Asked} question @param {CarriedLines} carried @param {PageRows} rows */
export function answer(question, { ops, lit }, rows) {
  if (question.ask === "ops") return { ops: ops[question.id] ?? [] };
  if (question.ask === "line_of") return { id: rows.lineOf(question.event) };
  if (!question.selected) return { ids: [] };
  const chosen = rows.chosen(question.selected);
  const { row, of } = lit[question.selected.grouping] ?? { row: [], of: [] };
  const ids = new Set(of.filter((_, at) => chosen.has(row[at])));
  return { ids: [...ids].sort((one, other) => one - other) };
}
