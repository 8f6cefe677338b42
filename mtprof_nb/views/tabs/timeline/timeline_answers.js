// Answers for the timeline on a page without Python: windows made from the finest blocks that the page carries.

import { Levels } from "./levels.js";
import { launchesOf, linkedTo } from "./page_launches.js";

/**
 * @import { Launches } from "./devices_types"
 * @import { Bars, Question, Selected, TimelineWindow } from "../../web/types/messages"
 * @import { CarriedTimeline } from "../../web/types/carried"
 * @import { PageRows } from "../../web/page/page_rows.js"
 * @import { Run } from "./levels.js"
 * @typedef {Extract<Question, { tab: "timeline" }>} Asked
 */

/** `parts`: the families that are drawn apart in a block of more than a few events. */
const MOST = { blocks: 2000, phases: 240, gaps: 600, steps: 60, parts: 4 };
const FEW_EVENTS = 8;
/** Part of the visible window that is also drawn on either side, for panning. */
const BEYOND = 0.25;
const FACTS = /** @type {const} */ (["event", "name", "took_ns", "self_ns", "phase", "step", "op", "shape", "line"]);

/** @type {WeakMap<TimelineWindow, Merger>} */
const mergers = new WeakMap();

/** Makes windows of a carried timeline, always the same object for one timeline. @param {TimelineWindow} carried */
export function mergerOf(carried) {
  const merger = mergers.get(carried) ?? new Merger(carried);
  mergers.set(carried, merger);
  return merger;
}

/**
 * @param {Asked} question
 * @param {CarriedTimeline} carried
 * @param {PageRows} rows
 * @returns {TimelineWindow | Launches}
 */
export function answer(question, carried, rows) {
  if (question.ask === "launches") return launchesOf(question.event, carried.launches);
  const { begin_ns, end_ns, pixels, selected } = question;
  const beyond = Math.round((end_ns - begin_ns) * BEYOND);
  const [begin, end] = [Math.max(begin_ns - beyond, 0), Math.min(end_ns + beyond, carried.drawn_ns[1])];
  const wider = Math.round((pixels * (end - begin)) / Math.max(end_ns - begin_ns, 1));
  return mergerOf(carried).window(begin, end, wider, selected && litBars(carried, selected, rows));
}

/**
 * Tests whether a bar's longest event is selected, or linked to one that is.
 * @param {CarriedTimeline} carried
 * @param {Selected} selected
 * @param {PageRows} rows
 */
function litBars({ bars, launches }, selected, rows) {
  const chosen = rows.chosen(selected);
  /** @param {number} one */
  const isChosen = (one) => chosen.has(rows.rowOf(selected.grouping, one));
  const linked = linkedTo(launches, isChosen);
  return (/** @type {number} */ bar) => isChosen(bars.event[bar]) || linked.has(bars.event[bar]);
}

class Merger {
  #carried;
  #levels;
  #phases;
  #gaps;
  /** @type {number[]} the first bar of each block, and the end of the last */
  #firstBar = [];
  #isMerged;

  /** @param {TimelineWindow} carried */
  constructor(carried) {
    this.#carried = carried;
    this.#levels = new Levels(carried.blocks);
    this.#phases = new Levels({ ...carried.phases, row: carried.phases.lane });
    this.#gaps = new Levels({ ...carried.gaps, row: carried.gaps.lane });
    for (const [bar, block] of carried.bars.block.entries()) this.#firstBar[block] ??= bar;
    this.#firstBar.push(carried.bars.block.length);
    this.#isMerged = carried.blocks.count.some((count) => count > 1);
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
      ...(this.#isMerged ? { finest_ns: this.#carried.merged_ns } : {}),
      ...this.#merged(runs, isLit),
      texts: this.#carried.texts,
      phases: this.#phasesIn(begin, end, pixels),
      gaps: this.#gapsIn(begin, end, pixels),
      steps: this.#stepsIn(begin, end),
    };
  }

  /** @param {Run[]} runs @param {((bar: number) => boolean) | null} isLit */
  #merged(runs, isLit) {
    const { row, start_ns, length_ns } = this.#carried.blocks;
    /** @type {TimelineWindow["blocks"]} */
    const blocks = { row: [], start_ns: [], length_ns: [], count: [], time_ns: [], lit: isLit ? [] : null };
    /** @type {Bars} */
    const bars = { block: [], family: [], count: [], time_ns: [], ...emptyFacts() };
    for (const [first, last] of runs) {
      const block = blocks.row.push(row[first]) - 1;
      blocks.start_ns.push(start_ns[first]);
      blocks.length_ns.push(start_ns[last - 1] + length_ns[last - 1] - start_ns[first]);
      const [count, time_ns] = [
        sum(this.#carried.blocks.count, first, last),
        sum(this.#carried.blocks.time_ns, first, last),
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
    const carried = this.#carried.bars;
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
    const { lane, start_ns, length_ns, phase } = this.#carried.phases;
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
    const { lane, start_ns, length_ns, cause, count, time_ns } = this.#carried.gaps;
    /** @type {TimelineWindow["gaps"]} */
    const found = { lane: [], start_ns: [], length_ns: [], cause: [], count: [], time_ns: [] };
    for (const [first, last] of this.#gaps.window(begin, end, pixels, MOST.gaps).runs) {
      const length = start_ns[last - 1] + length_ns[last - 1] - start_ns[first];
      for (const [code, held] of byCause(cause, first, last)) {
        found.lane.push(lane[first]);
        found.start_ns.push(start_ns[first]);
        found.length_ns.push(length);
        found.cause.push(code);
        found.count.push(held.reduce((total, at) => total + count[at], 0));
        found.time_ns.push(held.reduce((total, at) => total + time_ns[at], 0));
      }
    }
    return found;
  }

  /** @param {number} begin @param {number} end */
  #stepsIn(begin, end) {
    const { number, start_ns } = this.#carried.steps;
    const visible = number.map((_, at) => at).filter((at) => begin <= start_ns[at] && start_ns[at] < end);
    const shown = visible.length > MOST.steps ? [] : visible;
    return { number: shown.map((at) => number[at]), start_ns: shown.map((at) => start_ns[at]) };
  }
}

/** @returns {Record<typeof FACTS[number], number[]>} */
const emptyFacts = () => ({
  event: [],
  name: [],
  took_ns: [],
  self_ns: [],
  phase: [],
  step: [],
  op: [],
  shape: [],
  line: [],
});

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
  const found = new Map();
  for (let at = first; at < last; at++) found.set(cause[at], [...(found.get(cause[at]) ?? []), at]);
  return [...found].sort(([one], [other]) => one - other);
}
