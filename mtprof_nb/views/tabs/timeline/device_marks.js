// Devices on a timeline: why each was idle, and arrows from calls to the kernels that they launched.

import { duration, number } from "../../web/format.js";

/**
 * @import { TimelineWindow } from "../../web/types/messages"
 * @import { Arrows, Cause } from "./devices_types"
 * @import { LaneRows } from "../../web/drawing/lanes.js"
 * @import { Plane } from "../../web/drawing/plane.js"
 */

/** Part of a row's height that gaps fill, and where they begin. */
const RIBBON = 0.6;
const ABOVE = 0.12;
/** How dark arrows are, few or many. */
const FEW_ARROWS = 30;
const [FEW_ALPHA, MANY_ALPHA] = [0.75, 0.3];
const HEAD_PIXELS = 5;

/**
 * Gaps above the first stream of each device. In gaps drawn together, the height of a cause is its share of the time.
 * @param {Plane} plane
 * @param {LaneRows} rows
 * @param {TimelineWindow} drawn
 * @param {Cause[]} causes
 */
export function paintGaps(plane, rows, { gaps }, causes) {
  let [below, last] = [0, -1];
  for (const [at, lane] of gaps.lane.entries()) {
    const isSame = at > 0 && gaps.start_ns[at] === gaps.start_ns[last] && lane === gaps.lane[last];
    below = isSame ? below : 0;
    last = at;
    const height = (gaps.time_ns[at] / Math.max(gaps.length_ns[at], 1)) * RIBBON * rows.rowPixels;
    const y = rows.top(plane, lane) + (ABOVE + RIBBON) * rows.rowPixels - below - height;
    below += height;
    const [x, width] = [plane.x(gaps.start_ns[at]), gaps.length_ns[at] * plane.scale];
    if (x > plane.right || x + width < plane.left || !plane.shows(y, height)) continue;
    const { title, colour } = causes[gaps.cause[at]];
    plane.context.fillStyle = colour;
    plane.context.fillRect(x, y, width, height);
    plane.shapes.push({ x, y, width, height, label: title, describe: () => gapDescription(title, gaps, at) });
  }
}

/** @param {string} title @param {TimelineWindow["gaps"]} gaps @param {number} at */
function gapDescription(title, gaps, at) {
  const { count, time_ns, length_ns } = gaps;
  if (count[at] === 1 && time_ns[at] === length_ns[at]) return [title, duration(time_ns[at])];
  const gap = count[at] === 1 ? "gap" : "gaps";
  return [title, `${number(count[at])} ${gap}, ${duration(time_ns[at])} in ${duration(length_ns[at])}`];
}

/**
 * Arrows from the middle of a call's row to that of a kernel's.
 * @param {Plane} plane
 * @param {LaneRows} rows
 * @param {Arrows} arrows
 */
export function paintArrows(plane, rows, { from_row, from_ns, to_row, to_ns }) {
  const { context } = plane;
  context.save();
  context.globalAlpha = from_row.length > FEW_ARROWS ? MANY_ALPHA : FEW_ALPHA;
  context.strokeStyle = plane.theme.text;
  context.fillStyle = plane.theme.text;
  context.lineWidth = 1;
  for (const [at, row] of from_row.entries()) {
    const from = [plane.x(from_ns[at]), rows.y(plane, row) + 0.85 * rows.rowPixels];
    const to = [plane.x(to_ns[at]), rows.y(plane, to_row[at]) + 0.15 * rows.rowPixels];
    paintArrow(context, from, to);
  }
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {number[]} from @param {number[]} to */
function paintArrow(context, [fromX, fromY], [toX, toY]) {
  const down = Math.sign(toY - fromY) || 1;
  const bend = Math.max(Math.abs(toY - fromY) / 2, 12) * down;
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.bezierCurveTo(fromX, fromY + bend, toX, toY - bend, toX, toY);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - HEAD_PIXELS / 2, toY - HEAD_PIXELS * down);
  context.lineTo(toX + HEAD_PIXELS / 2, toY - HEAD_PIXELS * down);
  context.fill();
}
