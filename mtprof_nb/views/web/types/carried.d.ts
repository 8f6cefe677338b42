// What a page without Python carries: `carried` of each tab's Python class, and the rows of all events in it.

import type { Arrows } from "../../tabs/timeline/devices_types";
import type { MemoryWindow } from "../../tabs/memory/memory_types";
import type { LineOps, OperatorsTable, StackChart, TabName, TimelineWindow } from "./messages";

/** `OperatorsTab.carried`. */
export interface CarriedOperators {
  tables: Record<string, OperatorsTable>;
}

/** Distinct pairs of a row of a grouping and a line, or a slice: `selection.pairs`. */
export interface Pairs {
  row: number[];
  of: number[];
}

/** `LinesTab.carried`. */
export interface CarriedLines {
  ops: Record<number, LineOps["ops"]>;
  /** By grouping. */
  lit: Record<string, Pairs>;
}

/** `StacksTab.carried`. */
export interface CarriedStacks {
  charts: Record<string, StackChart>;
  /** By metric, then by grouping. */
  lit: Record<string, Record<string, { own: Pairs; below: Pairs }>>;
}

/** `TimelineTab.carried`. */
export interface CarriedTimeline extends TimelineWindow {
  launches: CarriedLaunches;
}

/** Launches of kernels by the time of the call: `launches.carried_launches`. */
export interface CarriedLaunches extends Arrows {
  kernel: number[];
  call: number[];
  /** The event that a kernel belongs to, -1 for none. */
  owner: number[];
  /** Those events, and what each ran in, -1 for nothing. */
  within: { event: number[]; parent: number[] };
}

/** `TwoTimelinesTab.carried`. */
export interface CarriedTwoTimelines {
  a: CarriedSide;
  b: CarriedSide;
}

/** One recording, and the steps of it that can be chosen. */
export interface CarriedSide {
  window: TimelineWindow;
  start_ns: number[];
  length_ns: number[];
}

export interface Carried {
  operators: CarriedOperators;
  lines: CarriedLines;
  timeline: CarriedTimeline;
  stacks: CarriedStacks;
  memory: MemoryWindow;
  two_timelines: CarriedTwoTimelines;
}

/** The rows that select events, for all events that are carried: `html_page._rows`. */
export interface CarriedRows {
  /** Their positions in the trace, rising. */
  events: number[];
  /** By grouping, -1 for none. */
  rows: Record<string, number[]>;
  lines: number[];
}

/** Texts of the packed parts of a page, by their names. */
export type Blocks = Record<string, string>;

/** How a tab's questions are answered on a page. */
export interface AnswerModule {
  answer(question: never, carried: never, rows: import("../page/page_rows.js").PageRows): object;
}

export type AnswerModules = Partial<Record<TabName, AnswerModule>>;
