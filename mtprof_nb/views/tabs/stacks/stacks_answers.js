// Answers for the stacks on a page without Python: the chart of each metric, with a selection lit.

/**
 * @import { CarriedStacks } from "../../web/types/carried"
 * @import { Question, StackChart } from "../../web/types/messages"
 * @import { PageRows } from "../../web/page/page_rows.js"
 * @typedef {Extract<Question, { tab: "stacks" }>} Asked
 */

/** @param {Asked} question @param {CarriedStacks} carried @param {PageRows} rows @returns {StackChart} */
export function answer({ metric, selected }, { charts, lit }, rows) {
  const chart = charts[metric];
  if (!selected) return chart;
  const chosen = rows.chosen(selected);
  const { own, below } = lit[metric][selected.grouping] ?? { own: { row: [], of: [] }, below: { row: [], of: [] } };
  const { parent } = chart.slices;
  const strengths = parent.map(() => 0);
  /** Lights the callers of a slice a little. @param {number} slice */
  const lightUp = (slice) => {
    for (let at = slice; at >= 0; at = parent[at]) strengths[at] = Math.max(strengths[at], 1);
  };
  for (const [at, slice] of below.of.entries()) if (chosen.has(below.row[at])) lightUp(slice);
  for (const [at, slice] of own.of.entries()) {
    if (!chosen.has(own.row[at])) continue;
    lightUp(slice);
    strengths[slice] = 2;
  }
  return { ...chart, slices: { ...chart.slices, lit: strengths } };
}
