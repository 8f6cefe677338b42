// Messages of a comparison: mtprof_nb/views/comparison.

import type { Column, Family, Lane, Rows, TimelineWindow } from "../../web/types/messages";

/** Names of both sides. */
export type Labels = [a: string, b: string];

/** `measured_points.Points`: for each run its times in order, in nanoseconds. */
export interface Points {
  unit: string;
  a: number[][];
  b: number[][];
}

/** `differences_tab._written`. */
export interface DifferenceRows extends Rows {
  family: number[];
  /** Whether a row has too little of the time to matter. */
  small: boolean[];
}

/** `DifferencesTab.first`. */
export interface DifferencesFirst {
  labels: Labels;
  explanation: string[];
  points: Points;
  /** Name, value of a, value of b, and kind of each change. */
  changes: [name: string, a: string, b: string, change: string][];
  more_changes: number;
  columns: Column[];
  rows: DifferenceRows;
  more_rows: number;
  /** Kinds of rows, which `family` points to. */
  levels: Family[];
}

/** `SideBySideTab.first`. */
export interface SideBySideFirst {
  labels: Labels;
  largest_ns: number;
  files: FileVersions[];
}

export interface FileVersions {
  a_title: string;
  b_title: string;
  /** null marks rows that are left out. */
  rows: (VersionRow | null)[];
}

/** `side_by_side_tab._written`. */
export interface VersionRow {
  a: LineVersion | null;
  b: LineVersion | null;
  /** "new", "gone", "edited" or "". */
  change: string;
}

/** `side_by_side_tab._version`. */
export interface LineVersion {
  number: number;
  text: string;
  /** null for a line that did not run. */
  ns: number | null;
}

/** `TwoTimelinesTab.answer`. Times are since the beginning of the step. */
export interface TwoWindows {
  windows: [TimelineWindow, TimelineWindow];
}

/** `TwoTimelinesTab.first`. */
export interface TwoTimelinesFirst extends TwoWindows {
  labels: Labels;
  /** Steps that can be chosen, with the length on each side. */
  steps: { title: string; length_ns: [a: number, b: number] }[];
  lanes: [Lane[], Lane[]];
  families: Family[];
  legend: number[];
}
