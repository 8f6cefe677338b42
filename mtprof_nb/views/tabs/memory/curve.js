// Curves of bytes over time: a step at each change, with an axis of bytes and the peak.

import { firstWhere } from "../../web/first_where.js";
import { duration, nbytes } from "../../web/format.js";
import { fitted, shortLocation } from "../../web/label.js";

/**
 * @import { MemoryCurve, MemoryKind, MemoryWindow } from "./memory_types"
 * @import { Texts } from "../../web/types/messages"
 * @import { Plane, Shape } from "../../web/drawing/plane.js"
 * @import { Selection } from "../../web/types/surroundings"
 */

/** Colours of the devices, in their order. */
export const COLOURS = ["#1f77d0", "#f2a02c", "#55b075", "#cc7abd", "#c8431f"];
const PEAK_COLOUR = "#c8431f";
const PEAK_PIXELS = 5;
const DOT_PIXELS = 3;
const TICKS = 5;
/** Room above the highest peak. */
const ABOVE = 1.18;

/** Round numbers of bytes from 0 to `peak`, a few of them. @param {number} peak */
export function byteTicks(peak) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(peak / TICKS, 1)));
  return Array.from({ length: Math.floor(peak / step) + 1 }, (_, at) => at * step);
}

/** Pixels of bytes on a plane. @param {Plane} plane @param {MemoryWindow} drawn @returns {(count: number) => number} */
function heights(plane, { curves }) {
  const most = Math.max(...curves.map(({ peak }) => peak.nbytes), 1) * ABOVE;
  return (count) => plane.bottom - (count / most) * (plane.bottom - plane.top);
}

/** Round numbers of bytes and their pixels. @param {Plane} plane @param {MemoryWindow} drawn */
function byteMarks(plane, drawn) {
  const y = heights(plane, drawn);
  const peak = Math.max(...drawn.curves.map((curve) => curve.peak.nbytes));
  return byteTicks(peak).map((count) => ({ text: nbytes(count), y: y(count) }));
}

/** @param {Plane} plane @param {MemoryWindow} drawn */
export function paintByteGrid(plane, drawn) {
  for (const { y } of byteMarks(plane, drawn)) plane.line([plane.left, y], [plane.right, y], plane.theme.grid);
}

/** @param {Plane} plane @param {MemoryWindow} drawn */
export function paintByteAxis(plane, drawn) {
  for (const { text, y } of byteMarks(plane, drawn)) plane.write(text, plane.left - 8, y, plane.theme.quiet, "right");
}

/** @param {Plane} plane @param {MemoryWindow} drawn */
export function paintCurves(plane, drawn) {
  const { context } = plane;
  const y = heights(plane, drawn);
  for (const [number, curve] of drawn.curves.entries()) {
    const colour = COLOURS[number % COLOURS.length];
    const kinds = drawn.curves.length === 1 ? stacked(curve.kinds).reverse() : [];
    for (const { nbytes: held, ...area } of kinds.length ? kinds : [{ ...curve, colour: `${colour}33` }]) {
      const path = stepped(plane, curve.time_ns, held, y);
      path.lineTo(plane.x(Math.max(plane.window[1], curve.time_ns[curve.time_ns.length - 1])), plane.bottom);
      path.lineTo(plane.x(curve.time_ns[0]), plane.bottom);
      context.fillStyle = area.colour;
      context.fill(path);
    }
    context.strokeStyle = kinds.length ? plane.theme.text : colour;
    context.lineWidth = kinds.length ? 1 : 1.5;
    context.stroke(stepped(plane, curve.time_ns, curve.nbytes, y));
  }
}

/** Kinds of memory with the bytes of each and of those below it. @param {MemoryKind[]} kinds */
export function stacked(kinds) {
  /** @type {number[]} */
  let below = [];
  return kinds.map((kind) => {
    below = kind.nbytes.map((count, at) => count + (below[at] ?? 0));
    return { ...kind, nbytes: below };
  });
}

/** @param {Plane} plane @param {number[]} time_ns @param {number[]} held @param {(count: number) => number} y */
function stepped(plane, time_ns, held, y) {
  const path = new Path2D();
  path.moveTo(plane.x(time_ns[0]), y(held[0]));
  for (let at = 1; at < time_ns.length; at++) {
    path.lineTo(plane.x(time_ns[at]), y(held[at - 1]));
    path.lineTo(plane.x(time_ns[at]), y(held[at]));
  }
  // The last bytes are held until the end.
  path.lineTo(plane.x(Math.max(plane.window[1], time_ns[time_ns.length - 1])), y(held[held.length - 1]));
  return path;
}

/**
 * Whether a change, or an allocation, is of what is selected: by its line, or by the name of its op.
 * @param {{ name: number[], line: number[] }} columns
 * @param {Pick<Selection, "grouping" | "row" | "name"> | null} selection
 * @returns {(at: number) => boolean}
 */
export function isOf({ name, line }, selection) {
  if (!selection) return () => false;
  if (selection.grouping === "source") return (at) => line[at] === selection.row;
  return (at) => selection.name >= 0 && name[at] === selection.name;
}

/** Dots on the curves at the changes of what is selected. @param {Plane} plane @param {MemoryWindow} drawn @param {Selection | null} selection */
export function paintSelected(plane, drawn, selection) {
  const y = heights(plane, drawn);
  for (const curve of drawn.curves) {
    const chosen = isOf(curve, selection);
    for (const [at, time] of curve.time_ns.entries()) {
      const x = plane.x(time);
      if (!chosen(at) || x < plane.left || x > plane.right) continue;
      const top = y(curve.nbytes[at]);
      plane.context.beginPath();
      plane.context.arc(x, top, DOT_PIXELS, 0, 2 * Math.PI);
      plane.context.fillStyle = plane.theme.text;
      plane.context.fill();
      const box = { x: x - DOT_PIXELS, y: top - DOT_PIXELS, width: 2 * DOT_PIXELS, height: 2 * DOT_PIXELS };
      plane.shapes.push({ ...box, label: "selected", describe: () => description(drawn.texts, curve, at, time) });
    }
  }
}

/** The peak of each curve, with its cause on the side where there is more room. @param {Plane} plane @param {MemoryWindow} drawn */
export function paintPeaks(plane, drawn) {
  const y = heights(plane, drawn);
  for (const { title, peak } of drawn.curves) {
    const [x, top] = [plane.x(peak.time_ns), y(peak.nbytes)];
    if (x < plane.left || x > plane.right) continue;
    diamond(plane.context, x, top);
    const isLeft = x > (plane.left + plane.right) / 2;
    const room = (isLeft ? x - plane.left : plane.right - x) - 2 * PEAK_PIXELS;
    const label = `peak ${nbytes(peak.nbytes)}${cause(drawn.texts, peak.name, peak.line)}`;
    const text = fitted(label, room, plane.font);
    plane.write(text, x + (isLeft ? -8 : 8), top - 9, plane.theme.text, isLeft ? "right" : "left");
    const box = { x: x - PEAK_PIXELS, y: top - PEAK_PIXELS, width: 2 * PEAK_PIXELS, height: 2 * PEAK_PIXELS };
    plane.shapes.push({ ...box, label, describe: () => [`${label} on ${title}`] });
  }
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y */
function diamond(context, x, y) {
  context.fillStyle = PEAK_COLOUR;
  context.fill(
    new Path2D(
      `M${x},${y - PEAK_PIXELS}l${PEAK_PIXELS},${PEAK_PIXELS}l-${PEAK_PIXELS},${PEAK_PIXELS}l-${PEAK_PIXELS},-${PEAK_PIXELS}z`,
    ),
  );
}

/** @param {Texts} texts @param {number} name @param {number} line */
function cause({ names, lines }, name, line) {
  return `${name >= 0 ? ` by ${names[name]}` : ""}${lines[line] ? `, ${shortLocation(lines[line])}` : ""}`;
}

/**
 * What the nearest curve held at a point, and the change that led to it.
 * @param {Plane} plane
 * @param {MemoryWindow} drawn
 * @param {number} x
 * @param {number} pointer its y
 * @returns {Shape | null}
 */
export function heldAt(plane, drawn, x, pointer) {
  if (x < plane.left || x > plane.right || !plane.shows(pointer, 0)) return null;
  const y = heights(plane, drawn);
  const ns = plane.ns(x);
  const nearest = drawn.curves
    .map((curve) => ({ curve, at: firstWhere(0, curve.time_ns.length, (at) => curve.time_ns[at] > ns) - 1 }))
    .filter(({ at }) => at >= 0)
    .map(({ curve, at }) => ({ curve, at, top: y(curve.nbytes[at]) }))
    .sort((one, other) => Math.abs(one.top - pointer) - Math.abs(other.top - pointer))[0];
  if (!nearest) return null;
  const { curve, at, top } = nearest;
  const picks =
    curve.event[at] >= 0 ? { event: curve.event[at], name: curve.name[at], line: curve.line[at] } : undefined;
  const mark = () => crosshair(plane, x, top);
  return { x, y: top, width: 0, height: 0, picks, mark, describe: () => description(drawn.texts, curve, at, ns) };
}

/** @param {Texts} texts @param {MemoryCurve} curve @param {number} at @param {number} ns */
function description(texts, { title, nbytes: held, time_ns, change, name, line, kinds }, at, ns) {
  const sign = change[at] > 0 ? "+" : "";
  const by = name[at] >= 0 ? ` by ${texts.names[name[at]]}` : "";
  return [
    `${nbytes(held[at])} on ${title}, at ${duration(ns)}`,
    change[at] ? `${sign}${nbytes(change[at])}${by}, at ${duration(time_ns[at])}` : "",
    texts.lines[line[at]],
    ...kinds.map((kind) => (kind.nbytes[at] ? `${kind.title} ${nbytes(kind.nbytes[at])}` : "")).reverse(),
  ].filter(Boolean);
}

/** @param {Plane} plane @param {number} x @param {number} y */
function crosshair(plane, x, y) {
  plane.line([x, plane.top], [x, plane.bottom], plane.theme.quiet, [2, 2]);
  plane.context.beginPath();
  plane.context.arc(x, y, 3, 0, 2 * Math.PI);
  plane.context.fillStyle = plane.theme.text;
  plane.context.fill();
}
