// What Python sends once, and a page without Python carries: from it the page answers for any window and selection.

import type { Arrows } from "../../tabs/timeline/devices_types";
import type { TimelineWindow } from "./messages";

/** Distinct pairs of a row of a grouping and a line, or a slice: `selection.pairs`. */
export interface Pairs {
  row: number[];
  of: number[];
}

/** Events, rising, and the row that selects each, -1 for none: `selection.event_rows`. */
export interface EventRows {
  event: number[];
  row: number[];
}

/** The slices with events of a row, and those above such events that are not drawn: `StacksTab._lit`. */
export interface LitSlices {
  own: Pairs;
  below: Pairs;
}

/** `TimelineTab._whole`. */
export interface WholeTimeline extends TimelineWindow {
  launches: AllLaunches;
}

/** Launches of kernels by the time of the call: `launches.all_launches`. */
export interface AllLaunches extends Arrows {
  kernel: number[];
  call: number[];
  /** The event that a kernel belongs to, -1 for none. */
  owner: number[];
  /** Those events, and what each ran in, -1 for nothing. */
  within: { event: number[]; parent: number[] };
}

/** `TwoTimelinesTab._whole`. */
export interface TwoWholes {
  a: WholeSide;
  b: WholeSide;
}

/** One recording, and the steps of it that can be chosen. */
export interface WholeSide {
  window: TimelineWindow;
  start_ns: number[];
  length_ns: number[];
}
