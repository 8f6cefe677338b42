// Windows of a timeline, made from its finest blocks.

import { Levels } from "./levels.js";
import { linkedTo } from "./launches.js";

/**
 * @import { Bars, DrawnWindow, TimelineWindow } from "../../web/types/messages"
 * @import { WholeTimeline } from "../../web/types/carried"
 * @import { Run } from "./levels.js"
 */

/** `parts`: the families that are drawn apart in a block of more than a few events. */
const MOST = { blocks: 2000, phases: 240, gaps: 600, steps: 60, parts: 4 };
const FEW_EVENTS = 8;
/** Part of the visible window that is also drawn on either side, for panning. */
const BEYOND = 0.25;
const FACTS = /** @type {const} */ (["event", "name", "took_ns", "self_ns", "phase", "step", "op", "shape", "line"]);

/** @type {WeakMap<TimelineWindow, Merger>} */
const mergers = new WeakMap();

/** Makes windows of a whole timeline, always the same object for one timeline. @param {TimelineWindow} whole */
export function mergerOf(whole) {
  const merger = mergers.get(whole) ?? new Merger(whole);
  mergers.set(whole, merger);
  return merger;
}

/**
 * A window, and a part on either side of it.
 * @param {WholeTimeline} whole
 * @param {DrawnWindow} wanted
 * @param {((event: number) => boolean) | null} isChosen whether an event is selected; none without a selection
 */
export function timelineWindow(whole, { begin_ns, end_ns, pixels }, isChosen) {
  const beyond = Math.round((end_ns - begin_ns) * BEYOND);
  const [begin, end] = [Math.max(begin_ns - beyond, 0), Math.min(end_ns + beyond, whole.drawn_ns[1])];
  const wider = Math.round((pixels * (end - begin)) / Math.max(end_ns - begin_ns, 1));
  return mergerOf(whole).window(begin, end, wider, isChosen && litBars(whole, isChosen));
}

/**
 * Tests whether a bar's longest event is selected, or linked to one that is.
 * @param {WholeTimeline} whole
 * @param {(event: number) => boolean} isChosen
 */
function litBars({ bars, launches }, isChosen) {
  const linked = linkedTo(launches, isChosen);
  return (/** @type {number} */ bar) => isChosen(bars.event[bar]) || linked.has(bars.event[bar]);
}

class Merger {
  #whole;
  #levels;
  #phases;
  #gaps;
  /** @type {number[]} the first bar of each block, and the end of the last */
  #firstBar = [];
  #isMerged;

  /** @param {TimelineWindow} whole */
  constructor(whole) {
    this.#whole = whole;
    this.#levels = new Levels(whole.blocks);
    this.#phases = new Levels({ ...whole.phases, row: whole.phases.lane });
    this.#gaps = new Levels({ ...whole.gaps, row: whole.gaps.lane });
    for (const [bar, block] of whole.bars.block.entries()) this.#firstBar[block] ??= bar;
    this.#firstBar.push(whole.bars.block.length);
    this.#isMerged = whole.blocks.count.some((count) => count > 1);
  }

  /**
   * @param {number} begin
   * @param {number} end
   * @param {number} pixels
   * @param {((bar: number) => boolean) | null} [isLit] whether a bar is selected; none without a selection
   * @returns {TimelineWindow}
   */
  window(begin, end, pixels, isLit = null) {
    const { runs, merged_ns } = this.#levels.window(begin, end, pixels, MOST.blocks);
    return {
      drawn_ns: [begin, end],
      pixel_ns: Math.max(end - begin, 1) / pixels,
      merged_ns,
      ...(this.#isMerged ? { finest_ns: this.#whole.merged_ns } : {}),
      ...this.#merged(runs, isLit),
      texts: this.#whole.texts,
      phases: this.#phasesIn(begin, end, pixels),
      gaps: this.#gapsIn(begin, end, pixels),
      steps: this.#stepsIn(begin, end),
    };
  }

  /** @param {Run[]} runs @param {((bar: number) => boolean) | null} isLit */
  #merged(runs, isLit) {
    const { row, start_ns, length_ns } = this.#whole.blocks;
    /** @type {TimelineWindow["blocks"]} */
    const blocks = { row: [], start_ns: [], length_ns: [], count: [], time_ns: [], lit: isLit ? [] : null };
    /** @type {Bars} */
    const bars = { block: [], family: [], count: [], time_ns: [], ...emptyFacts() };
    for (const [first, last] of runs) {
      const block = blocks.row.push(row[first]) - 1;
      blocks.start_ns.push(start_ns[first]);
      blocks.length_ns.push(start_ns[last - 1] + length_ns[last - 1] - start_ns[first]);
      const [count, time_ns] = [
        sum(this.#whole.blocks.count, first, last),
        sum(this.#whole.blocks.time_ns, first, last),
      ];
      blocks.count.push(count);
      blocks.time_ns.push(time_ns);
      const [from, to] = [this.#firstBar[first], this.#firstBar[last]];
      if (isLit) blocks.lit?.push(some(from, to, isLit));
      this.#addParts(bars, block, [from, to], { count, time_ns });
    }
    return { blocks, bars };
  }

  /**
   * The largest families of a block of many events; a block of few events whole, as its largest family.
   * @param {Bars} into
   * @param {number} block
   * @param {Run} run of carried bars
   * @param {{ count: number, time_ns: number }} whole
   */
  #addParts(into, block, [from, to], whole) {
    const carried = this.#whole.bars;
    /** @type {Map<number, { family: number, count: number, time_ns: number, longest: number }>} */
    const parts = new Map();
    for (let bar = from; bar < to; bar++) {
      const family = carried.family[bar];
      const part = parts.get(family) ?? { family, count: 0, time_ns: 0, longest: bar };
      part.count += carried.count[bar];
      part.time_ns += carried.time_ns[bar];
      if (carried.took_ns[bar] > carried.took_ns[part.longest]) part.longest = bar;
      parts.set(family, part);
    }
    const largest = [...parts.values()].sort((one, other) => other.time_ns - one.time_ns || one.family - other.family);
    const isFew = whole.count <= FEW_EVENTS;
    const drawn = largest.slice(0, isFew ? 1 : MOST.parts).sort((one, other) => one.family - other.family);
    for (const part of drawn) {
      const { count, time_ns } = isFew ? whole : part;
      into.block.push(block);
      into.family.push(part.family);
      into.count.push(count);
      into.time_ns.push(time_ns);
      for (const fact of FACTS) into[fact].push(carried[fact][part.longest]);
    }
  }

  /** @param {number} begin @param {number} end @param {number} pixels */
  #phasesIn(begin, end, pixels) {
    const { lane, start_ns, length_ns, phase } = this.#whole.phases;
    const { runs } = this.#phases.window(begin, end, Math.floor(pixels / 3), MOST.phases);
    return {
      lane: runs.map(([first]) => lane[first]),
      start_ns: runs.map(([first]) => start_ns[first]),
      length_ns: runs.map(([first, last]) => start_ns[last - 1] + length_ns[last - 1] - start_ns[first]),
      phase: runs.map(([first, last]) => dominant(phase, length_ns, first, last)),
    };
  }

  /** @param {number} begin @param {number} end @param {number} pixels */
  #gapsIn(begin, end, pixels) {
    const { lane, start_ns, length_ns, cause, count, time_ns } = this.#whole.gaps;
    /** @type {TimelineWindow["gaps"]} */
    const merged = { lane: [], start_ns: [], length_ns: [], cause: [], count: [], time_ns: [] };
    for (const [first, last] of this.#gaps.window(begin, end, pixels, MOST.gaps).runs) {
      const length = start_ns[last - 1] + length_ns[last - 1] - start_ns[first];
      for (const [code, held] of byCause(cause, first, last)) {
        merged.lane.push(lane[first]);
        merged.start_ns.push(start_ns[first]);
        merged.length_ns.push(length);
        merged.cause.push(code);
        merged.count.push(held.reduce((total, at) => total + count[at], 0));
        merged.time_ns.push(held.reduce((total, at) => total + time_ns[at], 0));
      }
    }
    return merged;
  }

  /** @param {number} begin @param {number} end */
  #stepsIn(begin, end) {
    const { number, start_ns } = this.#whole.steps;
    const visible = number.map((_, at) => at).filter((at) => begin <= start_ns[at] && start_ns[at] < end);
    const shown = visible.length > MOST.steps ? [] : visible;
    return { number: shown.map((at) => number[at]), start_ns: shown.map((at) => start_ns[at]) };
  }
}

/** @returns {Record<typeof FACTS[number], number[]>} */
const emptyFacts = () => /** @type {never} */ (Object.fromEntries(FACTS.map((fact) => [fact, []])));

/** @param {number[]} column @param {number} first @param {number} last */
function sum(column, first, last) {
  let total = 0;
  for (let at = first; at < last; at++) total += column[at];
  return total;
}

/** @param {number} from @param {number} to @param {(at: number) => boolean} passes */
function some(from, to, passes) {
  for (let at = from; at < to; at++) if (passes(at)) return true;
  return false;
}

/** The code that took the most time. @param {number[]} codes @param {number[]} times @param {number} first @param {number} last */
function dominant(codes, times, first, last) {
  /** @type {Map<number, number>} */
  const spent = new Map();
  for (let at = first; at < last; at++) spent.set(codes[at], (spent.get(codes[at]) ?? 0) + times[at]);
  return [...spent].reduce((one, other) =>
    other[1] > one[1] || (other[1] === one[1] && other[0] < one[0]) ? other : one,
  )[0];
}

/**
 * Positions from `first` up to `last` by their cause, the lowest first.
 * @param {number[]} cause
 * @param {number} first
 * @param {number} last
 */
function byCause(cause, first, last) {
  /** @type {Map<number, number[]>} */
  const positions = new Map();
  for (let at = first; at < last; at++) positions.set(cause[at], [...(positions.get(cause[at]) ?? []), at]);
  return [...positions].sort(([one], [other]) => one - other);
}
