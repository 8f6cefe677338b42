// Windows of memory curves, thinned so that no peak is lost.

import { firstWhere } from "../../web/first_where.js";

/** @import { MemoryCurve, MemoryWindow } from "./memory_types" */

const MOST_POINTS = 1200;
const COLUMNS = /** @type {const} */ (["time_ns", "nbytes", "change", "event", "name", "line"]);

/** @param {MemoryWindow} whole @param {number} begin_ns @param {number} end_ns @returns {MemoryWindow} */
export function memoryWindow(whole, begin_ns, end_ns) {
  const curves = whole.curves.map((curve) => inWindow(curve, begin_ns, end_ns));
  return { ...whole, drawn_ns: [begin_ns, end_ns], curves };
}

/** @param {MemoryCurve} curve @param {number} begin @param {number} end @returns {MemoryCurve} */
function inWindow(curve, begin, end) {
  const { time_ns, nbytes } = curve;
  const first = Math.max(firstWhere(0, time_ns.length, (at) => time_ns[at] > begin) - 1, 0);
  const last = Math.min(firstWhere(first, time_ns.length, (at) => time_ns[at] >= end) + 1, time_ns.length);
  const kept = thinned(nbytes, first, last, MOST_POINTS);
  const columns = COLUMNS.map((key) => [key, kept.map((at) => curve[key][at])]);
  const kinds = curve.kinds.map((kind) => ({ ...kind, nbytes: kept.map((at) => kind.nbytes[at]) }));
  return { ...curve, ...Object.fromEntries(columns), kinds };
}

/**
 * Positions of at most `most` points: of each of equal runs the first, lowest, highest and last.
 * @param {number[]} held
 * @param {number} first
 * @param {number} last
 * @param {number} most
 */
export function thinned(held, first, last, most) {
  const length = last - first;
  if (length <= most) return Array.from({ length }, (_, at) => first + at);
  /** @type {Set<number>} */
  const kept = new Set();
  const runs = Math.floor(most / 4);
  for (let run = 0; run < runs; run++) {
    const [from, to] = [first + Math.floor((run * length) / runs), first + Math.floor(((run + 1) * length) / runs)];
    let [lowest, highest] = [from, from];
    for (let at = from; at < to; at++) {
      if (held[at] < held[lowest]) lowest = at;
      if (held[at] > held[highest]) highest = at;
    }
    for (const at of [from, lowest, highest, to - 1]) kept.add(at);
  }
  return [...kept].sort((one, other) => one - other);
}
