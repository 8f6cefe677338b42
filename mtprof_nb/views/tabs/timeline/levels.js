// Level of detail: neighbours too short to draw apart become one block, which loses no time and no event.

import { firstWhere } from "../../web/first_where.js";

/**
 * @typedef {object} Rowed blocks by row, then by start; within a row, starts and ends both rise
 * @property {number[]} row
 * @property {number[]} start_ns
 * @property {number[]} length_ns
 * @typedef {[first: number, last: number]} Run the blocks from `first` up to, not including, `last`
 */

export class Levels {
  #blocks;
  /** @type {Run[]} the blocks of each row */
  #rows = [];
  /** Where the grid of merged blocks begins. */
  #origin;

  /** @param {Rowed} blocks */
  constructor(blocks) {
    this.#blocks = blocks;
    this.#origin = blocks.start_ns.reduce((least, ns) => Math.min(least, ns), Infinity);
    const { row } = blocks;
    for (let first = 0, last = 0; first < row.length; first = last) {
      while (last < row.length && row[last] === row[first]) last++;
      this.#rows.push([first, last]);
    }
  }

  /**
   * The blocks that touch a window, as at most `limit` runs (or one a row): neighbours shorter than a pixel are one run,
   * and longer ones only as far as `limit` demands. Returns the length below which neighbours were merged, too.
   * @param {number} begin
   * @param {number} end
   * @param {number} pixels
   * @param {number} limit
   */
  window(begin, end, pixels, limit) {
    const spans = this.#rows.map((span) => this.#touching(span, begin, end)).filter(([first, last]) => first < last);
    let level = Math.max(Math.floor(Math.log2(Math.max((end - begin) / pixels, 1))), 0);
    let runs = this.#runs(spans, level);
    while (runs.length > Math.max(limit, spans.length) && level < 60) runs = this.#runs(spans, ++level);
    return { runs, merged_ns: 2 ** level };
  }

  /** @param {Run} span @param {number} begin @param {number} end @returns {Run} */
  #touching([first, last], begin, end) {
    const { start_ns, length_ns } = this.#blocks;
    const from = firstWhere(first, last, (at) => start_ns[at] + length_ns[at] >= begin);
    return [from, firstWhere(from, last, (at) => start_ns[at] > end)];
  }

  /** @param {Run[]} spans @param {number} level */
  #runs(spans, level) {
    const { start_ns, length_ns } = this.#blocks;
    const cell = 2 ** level;
    /** @param {number} at */
    const cellOf = (at) => Math.floor((start_ns[at] - this.#origin) / cell);
    /** @type {Run[]} */
    const runs = [];
    for (const [first, last] of spans) {
      let begin = first;
      for (let at = first + 1; at <= last; at++) {
        const isTogether =
          at < last && length_ns[at] < cell && length_ns[at - 1] < cell && cellOf(at) === cellOf(at - 1);
        if (isTogether) continue;
        runs.push([begin, at]);
        begin = at;
      }
    }
    return runs;
  }
}
