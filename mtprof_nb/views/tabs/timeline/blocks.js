// Blocks of a timeline: each event a bar in its row, and the names of those that are wide enough.

import { duration, number } from "../../web/format.js";
import { fitted, shortName } from "../../web/label.js";
import { PHASES, fillPhase } from "../../web/drawing/hatches.js";

/**
 * @import { Collections, Family, TimelineWindow } from "../../web/types/messages"
 * @import { LaneRows } from "../../web/drawing/lanes.js"
 * @import { Plane, Shape } from "../../web/drawing/plane.js"
 * @typedef {{ families: Family[], has_steps: boolean }} Meaning what the numbers of a window mean
 * @typedef {Shape & { bar: number, family: Family, isLit: boolean, isAlone: boolean }} Bar
 */

/** Part of a row that a bar fills, and of a row's height that phases fill. */
const FILLED = 0.88;
const RIBBON = 0.66;
/** How much of its colour a bar keeps while others are selected. */
const DIMMED = 0.16;
const TICK_PIXELS = 11;
/** Single events that are wider have a gap of a pixel to the next one. */
const GAP_FROM = 4;
const PHASE_NAME_PIXELS = 64;
/** How garbage collections look: a light grey on any background. */
export const COLLECTION = { title: "garbage collection", colour: "rgba(128, 128, 128, 0.2)" };
const STEP_PIXELS = 72;

/**
 * The bars of a window that are in view: an event fills its row; in a block of many, the height of a family is its share
 * of the block's time, so that an area is a time at any level of detail. No bar is wider than its event was long.
 * @param {Plane} plane
 * @param {LaneRows} rows
 * @param {TimelineWindow} drawn
 * @param {Meaning} meaning
 * @param {(bar: number) => boolean} isLit
 * @returns {Bar[]}
 */
export function barsOf(plane, rows, drawn, meaning, isLit) {
  const { bars, blocks, texts } = drawn;
  /** @type {Bar[]} */
  const visible = [];
  let [below, last] = [0, -1];
  for (const [bar, block] of bars.block.entries()) {
    below = block === last ? below : 0;
    last = block;
    const isAlone = blocks.count[block] === 1;
    const share = isAlone ? 1 : bars.time_ns[bar] / Math.max(blocks.length_ns[block], 1);
    const height = share * FILLED * rows.rowPixels;
    const bottom = rows.y(plane, blocks.row[block]) + ((1 + FILLED) / 2) * rows.rowPixels - below;
    below += height;
    const box = span(plane, blocks.start_ns[block], blocks.length_ns[block], isAlone);
    if (box.x > plane.right || box.x + box.width < plane.left || !plane.shows(bottom - height, height)) continue;
    visible.push({
      ...box,
      y: bottom - height,
      height,
      bar,
      isAlone,
      isLit: isLit(bar),
      family: meaning.families[bars.family[bar]],
      label: texts.names[bars.name[bar]],
      picks: { event: bars.event[bar], name: bars.name[bar], line: bars.line[bar] },
      describe: () => description(drawn, bar, meaning),
    });
  }
  return visible;
}

/** @param {Plane} plane @param {number} start_ns @param {number} length_ns @param {boolean} isAlone */
function span(plane, start_ns, length_ns, isAlone) {
  const [left, right] = [plane.x(start_ns), plane.x(start_ns + length_ns)];
  if (right - left < GAP_FROM) return { x: left, width: right - left };
  // Edges on whole pixels are sharp.
  return { x: Math.round(left), width: Math.round(right) - Math.round(left) - Number(isAlone) };
}

/** @param {Plane} plane @param {Bar[]} bars */
export function paintBars(plane, bars) {
  const { context } = plane;
  for (const { x, y, width, height, family, isLit } of bars) {
    context.globalAlpha = isLit ? 1 : DIMMED;
    context.fillStyle = family.colour;
    context.fillRect(x, y, width, height);
    if (width >= 1 || !isLit) continue;
    // Narrower than a pixel: a tick marks it, and it keeps its true width.
    context.fillRect(Math.round(x), y + (height - Math.min(TICK_PIXELS, height)) / 2, 1, Math.min(TICK_PIXELS, height));
  }
  context.globalAlpha = 1;
  for (const bar of bars) if (bar.isLit && bar.isAlone) paintName(plane, bar);
}

/** The name of a bar, in the middle of its visible part. @param {Plane} plane @param {Bar} bar */
function paintName(plane, { x, y, width, height, label = "", family }) {
  const [left, right] = [Math.max(x, plane.left), Math.min(x + width, plane.right)];
  if (right - left < 12) return;
  const text = fitted(shortName(label), right - left - 6, plane.font);
  if (text) plane.write(text, (left + right) / 2, y + height / 2, family.ink, "center");
}

/**
 * Whether no zoom separates the merged events of a window: a page without Python carries no finer detail.
 * @param {TimelineWindow} drawn
 */
export function isFinest({ finest_ns, pixel_ns, blocks }) {
  return finest_ns !== undefined && pixel_ns < finest_ns && blocks.count.some((count) => count > 1);
}

/** @param {TimelineWindow} drawn @param {number} bar @param {Meaning} meaning */
function description(drawn, bar, { families, has_steps }) {
  const { bars, blocks, texts } = drawn;
  const block = bars.block[bar];
  const name = texts.names[bars.name[bar]];
  const [took, own, count] = [bars.took_ns[bar], bars.self_ns[bar], blocks.count[block]];
  if (count > 1) {
    const of = `${families[bars.family[bar]].title}: ${events(bars.count[bar])}, ${duration(bars.time_ns[bar])}`;
    const whole = `${events(count)}, ${duration(blocks.time_ns[block])} in ${duration(blocks.length_ns[block])}`;
    const hint = isFinest(drawn) ? "this page has no finer detail" : "zoom in to tell them apart";
    return [whole, of, `longest ${name}, ${duration(took)}`, hint];
  }
  const self = own >= 0 && own !== took ? ` (self ${duration(own)})` : "";
  const inputs = texts.shapes[bars.shape[bar]];
  return [
    name,
    `${duration(took)}${self}, at ${duration(blocks.start_ns[block])}`,
    texts.names[bars.op[bar]] && `launched by ${texts.names[bars.op[bar]]}`,
    PHASES[bars.phase[bar]] + (has_steps ? `, step ${bars.step[bar]}` : ""),
    inputs && `inputs ${inputs}`,
    texts.lines[bars.line[bar]],
  ].filter(Boolean);
}

/** @param {number} count */
const events = (count) => `${number(count)} event${count === 1 ? "" : "s"}`;

/** Phases above the lanes of threads. @param {Plane} plane @param {LaneRows} rows @param {TimelineWindow} drawn */
export function paintPhases(plane, rows, { phases }) {
  for (const [at, lane] of phases.lane.entries()) {
    const [x, y] = [plane.x(phases.start_ns[at]), rows.top(plane, lane) + 0.05 * rows.rowPixels];
    const [width, height] = [phases.length_ns[at] * plane.scale, RIBBON * rows.rowPixels];
    if (x > plane.right || x + width < plane.left || !plane.shows(y, height)) continue;
    const phase = PHASES[phases.phase[at]];
    fillPhase(plane.context, phase, { x, y, width, height });
    const [left, right] = [Math.max(x, plane.left), Math.min(x + width, plane.right)];
    if (right - left > PHASE_NAME_PIXELS)
      plane.write(phase, (left + right) / 2, y + height / 2, plane.theme.text, "center");
    plane.shapes.push({ x, y, width, height, label: phase, describe: () => [phase, duration(phases.length_ns[at])] });
  }
}

/**
 * Garbage collections, over the whole height of their lane and behind all else.
 * @param {Plane} plane
 * @param {LaneRows} rows
 * @param {Collections} collections
 */
export function paintCollections(plane, rows, { lane, start_ns, length_ns, generation }) {
  const { context } = plane;
  context.save();
  context.fillStyle = COLLECTION.colour;
  for (const [at, number] of lane.entries()) {
    const { top, bottom } = rows.lanes[number];
    const [x, width] = [plane.x(start_ns[at]), Math.max(length_ns[at] * plane.scale, 1)];
    const [y, height] = [rows.top(plane, number), (bottom - top) * rows.rowPixels];
    if (x > plane.right || x + width < plane.left || !plane.shows(y, height)) continue;
    context.fillRect(x, y, width, height);
    const text = `${COLLECTION.title}, generation ${generation[at]}, ${duration(length_ns[at])}`;
    plane.shapes.push({ x, y, width, height, label: COLLECTION.title, describe: () => [text] });
  }
  context.restore();
}

/** Dotted lines where steps begin, and their numbers above. @param {Plane} plane @param {TimelineWindow} drawn */
export function paintSteps(plane, { steps }) {
  let free = plane.left;
  for (const [at, start_ns] of steps.start_ns.entries()) {
    const x = plane.x(start_ns);
    if (x < plane.left - 1 || x > plane.right) continue;
    plane.line([x, plane.top], [x, plane.bottom], plane.theme.line, [2, 3]);
    if (x < free || x > plane.right - STEP_PIXELS / 2) continue;
    plane.write(`step ${number(steps.number[at])}`, x + 2, plane.top - 9, plane.theme.quiet);
    free = x + STEP_PIXELS;
  }
}
