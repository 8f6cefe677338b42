// Windows of time: zoomed, moved, and kept inside the recording. Times are nanoseconds since the recording began.

/** @typedef {[begin: number, end: number]} TimeWindow */

const SHORTEST_NS = 50;

/**
 * The window nearest to `window` that lies within the recording.
 * @param {TimeWindow} window
 * @param {number} whole the length of the recording
 * @returns {TimeWindow}
 */
export function within([begin, end], whole) {
  const length = Math.min(Math.max(end - begin, Math.min(SHORTEST_NS, whole)), whole);
  const from = Math.min(Math.max(begin, 0), whole - length);
  return [from, from + length];
}

/**
 * @param {TimeWindow} window
 * @param {number} factor by which the window becomes longer
 * @param {number} part of the window, from its begin, that stays in place
 * @returns {TimeWindow}
 */
export function zoomed([begin, end], factor, part = 0.5) {
  const at = begin + part * (end - begin);
  return [at - (at - begin) * factor, at + (end - at) * factor];
}

/**
 * @param {TimeWindow} window
 * @param {number} part of its length by which it moves
 * @returns {TimeWindow}
 */
export function moved([begin, end], part) {
  const by = (end - begin) * part;
  return [begin + by, end + by];
}
