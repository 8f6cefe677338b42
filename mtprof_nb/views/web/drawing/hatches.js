// Phases on a canvas: distinguished by hatching, because colours are for op families.

/** @import { Phase } from "../types/messages" */

const GREY = "#8a9199";
const SIZE = 5;
/** Strokes of each phase, in a square of `SIZE` pixels. */
const STROKES = {
  forward: "",
  backward: "M-1,1L1,-1M0,5L5,0M4,6L6,4",
  optimizer: "M2.5,0V5",
  other: "M2,2.5H3",
  compiling: "M-1,1L1,-1M0,5L5,0M4,6L6,4M-1,4L1,6M0,0L5,5M4,-1L6,1",
};
/** In the order of their codes. */
export const PHASES = /** @type {Phase[]} */ (Object.keys(STROKES));
/** @type {Map<string, CanvasPattern | null>} by phase and resolution */
const made = new Map();

/** @param {CanvasRenderingContext2D} context @param {Phase} phase */
function patternOf(context, phase) {
  const pixels = window.devicePixelRatio || 1;
  const key = `${phase} ${pixels}`;
  if (!made.has(key)) made.set(key, hatched(context, phase, pixels));
  return made.get(key) ?? null;
}

/** @param {CanvasRenderingContext2D} context @param {Phase} phase @param {number} pixels */
function hatched(context, phase, pixels) {
  const side = Math.round(SIZE * pixels);
  const tile = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const on = tile.getContext("2d");
  if (!on) return null;
  on.scale(side / SIZE, side / SIZE);
  on.strokeStyle = GREY;
  on.stroke(new Path2D(STROKES[phase]));
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(SIZE / side));
  return pattern;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Phase} phase
 * @param {{ x: number, y: number, width: number, height: number }} box
 */
export function fillPhase(context, phase, { x, y, width, height }) {
  context.fillStyle = `${GREY}2e`;
  context.fillRect(x, y, width, height);
  context.fillStyle = patternOf(context, phase) ?? "transparent";
  context.fillRect(x, y, width, height);
}
