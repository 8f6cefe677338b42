// The ranks tab: ranks_tab.py. Times are whole nanoseconds.

import type { Column, Rows } from "../../web/types/messages";

/** `RanksTab.first`. */
export interface RanksFirst {
  sentence: string;
  columns: Column[];
  rows: RankRows;
  /** Of each rank, the time in which it computed, communicated, waited, and none of these. */
  parts: number[][];
  steps: StepMatrix | null;
  collective_columns: Column[];
  collectives: Rows;
}

export interface RankRows extends Rows {
  /** The position of each rank's process in the trace. */
  process: number[];
}

/** `ranks_tab._steps`. */
export interface StepMatrix {
  /** The number of the first step of each group. */
  numbers: number[];
  /** How many steps are one column, which then shows the longest of them. */
  group: number;
  /** A row a rank, a column a group of steps; -1 where a rank has no such step. */
  duration_ns: number[][];
}
