// Launches of kernels: arrows of an event, and what is linked to selected events.

/**
 * @import { AllLaunches } from "../../web/types/carried"
 * @import { Launches } from "./devices_types"
 */

const MOST_ARROWS = 200;

/**
 * Tests whether an event, or one that it ran in, passes.
 * @param {AllLaunches} launches
 * @param {(event: number) => boolean} passes
 */
function within({ within: { event, parent } }, passes) {
  const above = new Map(event.map((one, at) => [one, parent[at]]));
  /** @type {Map<number, boolean>} */
  const known = new Map([[-1, false]]);
  /** @param {number} one @returns {boolean} */
  const test = (one) => {
    const isBelow = known.get(one) ?? (passes(one) || test(above.get(one) ?? -1));
    known.set(one, isBelow);
    return isBelow;
  };
  return test;
}

/**
 * For a kernel, the arrow from its launch; otherwise the arrows to the kernels that the event launched.
 * @param {number} event
 * @param {AllLaunches} launches
 * @returns {Launches}
 */
export function launchesOf(event, launches) {
  const { kernel, call, from_row, from_ns, to_row, to_ns } = launches;
  const isIn = within(launches, (one) => one === event);
  const made = kernel.map((_, at) => at).filter((at) => kernel[at] === event || isIn(call[at]));
  const shown = made.slice(0, MOST_ARROWS);
  /** @param {number[]} column */
  const pick = (column) => shown.map((at) => column[at]);
  const arrows = { from_row: pick(from_row), from_ns: pick(from_ns), to_row: pick(to_row), to_ns: pick(to_ns) };
  return { ...arrows, total: made.length };
}

/**
 * The kernels that chosen events launched, the ops of chosen kernels, and the calls between them.
 * @param {AllLaunches} launches
 * @param {(event: number) => boolean} isChosen
 */
export function linkedTo(launches, isChosen) {
  const { kernel, call, owner } = launches;
  const isIn = within(launches, isChosen);
  /** @type {Set<number>} */
  const linked = new Set();
  for (const [at, one] of kernel.entries()) {
    const isPicked = isChosen(one);
    if (isPicked) linked.add(owner[at]);
    if (isPicked || isIn(owner[at]) || isIn(call[at])) linked.add(one).add(call[at]);
  }
  return linked;
}
