// Slices of a call tree, laid out by size: where each begins and ends, and at which level, whatever shape they have.

import { ofRows } from "../../web/event_rows.js";

/**
 * @import { LitSlices } from "../../web/types/carried"
 * @import { Slices } from "../../web/types/messages"
 * @typedef {object} Place of a slice: its level below the root, and its part of the root's size
 * @property {number} level
 * @property {number} begin
 * @property {number} end
 * @typedef {object} Tree
 * @property {Place[]} places
 * @property {number[][]} callees of each slice, the largest first
 * @property {number} levels
 */

/** @param {Slices} slices @returns {Tree} */
export function laidOut({ parent, total }) {
  /** @type {number[][]} */
  const callees = total.map(() => []);
  for (const [slice, caller] of parent.entries()) if (caller >= 0) callees[caller].push(slice);
  /** @type {Place[]} */
  const places = [];
  const whole = total[0] || 1;
  /** @param {number} slice @param {number} level @param {number} begin */
  const place = (slice, level, begin) => {
    places[slice] = { level, begin, end: begin + total[slice] / whole };
    callees[slice].sort((one, other) => total[other] - total[one] || one - other);
    let from = begin;
    for (const callee of callees[slice]) {
      place(callee, level + 1, from);
      from = places[callee].end;
    }
  };
  place(0, 0, 0);
  return { places, callees, levels: 1 + Math.max(...places.map(({ level }) => level)) };
}

/** The slice itself and all its callers, up to the root. @param {Slices} slices @param {number} slice */
export function withCallers({ parent }, slice) {
  const callers = [];
  for (let at = slice; at >= 0; at = parent[at]) callers.push(at);
  return callers;
}

/**
 * Which slices have events of a name: 2 for itself, 1 for a callee, 0 for neither.
 * @param {Slices} slices
 * @param {number} wanted
 */
export const litByName = (slices, wanted) => litWhere(slices, (slice) => slices.name[slice] === wanted);

/**
 * Which slices are chosen: 2 for itself, 1 for a callee, 0 for neither.
 * @param {Pick<Slices, "parent">} slices
 * @param {(slice: number) => boolean} isChosen
 * @param {(slice: number) => boolean} isAbove whether what is chosen is below it, and not drawn
 */
export function litWhere({ parent }, isChosen, isAbove = () => false) {
  const lit = parent.map((_, slice) => (isChosen(slice) ? 2 : Number(isAbove(slice))));
  // Callers come before their callees.
  for (let slice = lit.length - 1; slice > 0; slice--) if (lit[slice]) lit[parent[slice]] ||= 1;
  return lit;
}

/**
 * Which slices have events of chosen rows: 2 for itself, 1 for one below it, 0 for neither.
 * @param {Pick<Slices, "parent">} slices
 * @param {LitSlices} pairs
 * @param {Set<number>} chosen
 */
export function litByRows(slices, { own, below }, chosen) {
  const [owned, above] = [ofRows(own, chosen), ofRows(below, chosen)];
  return litWhere(
    slices,
    (slice) => owned.has(slice),
    (slice) => above.has(slice),
  );
}

/**
 * The place that is between two, for a smooth zoom.
 * @param {Place} from
 * @param {Place} to
 * @param {number} part of the way
 * @returns {Place}
 */
export function between(from, to, part) {
  /** @param {keyof Place} key */
  const mixed = (key) => from[key] + (to[key] - from[key]) * part;
  return { level: mixed("level"), begin: mixed("begin"), end: mixed("end") };
}
