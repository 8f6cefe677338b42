// Windows of a step on both sides of a comparison.

import { mergerOf } from "../timeline/timeline_windows.js";

/**
 * @import { TwoWholes, WholeSide } from "../../web/types/carried"
 * @import { TwoWindows } from "../differences/comparison_types"
 * @import { DrawnWindow, TimelineWindow } from "../../web/types/messages"
 */

/** @param {TwoWholes} whole @param {DrawnWindow & { step: number }} wanted @returns {TwoWindows} */
export function stepWindows({ a, b }, wanted) {
  return { windows: [windowOf(wanted, a), windowOf(wanted, b)] };
}

/** @param {DrawnWindow & { step: number }} wanted @param {WholeSide} side */
function windowOf({ step, begin_ns, end_ns, pixels }, { window, start_ns, length_ns }) {
  const start = start_ns[step];
  // Nothing is drawn after the end of its own step; an event that begins as the step ends is of the next one.
  const ends = Math.max(Math.min(end_ns, length_ns[step]), begin_ns + 1);
  const width = Math.max(Math.round((pixels * (ends - begin_ns)) / Math.max(end_ns - begin_ns, 1)), 1);
  return since(start, mergerOf(window).window(start + begin_ns, start + ends - 1, width));
}

/** A window whose times are since `start`. @param {number} start @param {TimelineWindow} window @returns {TimelineWindow} */
function since(start, { drawn_ns, blocks, phases, gaps, steps, ...rest }) {
  /**
   * @template {{ start_ns: number[] }} Columns
   * @param {Columns} columns
   */
  const moved = (columns) => ({ ...columns, start_ns: columns.start_ns.map((ns) => ns - start) });
  return {
    ...rest,
    drawn_ns: [drawn_ns[0] - start, drawn_ns[1] - start],
    blocks: moved(blocks),
    phases: moved(phases),
    gaps: moved(gaps),
    steps: moved(steps),
  };
}
