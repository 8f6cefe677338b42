// Messages of the memory tab: memory_chart.py.

import type { Column, Rows, Texts } from "../../web/types/messages";

/** `MemoryChart.window`. */
export interface MemoryWindow {
  drawn_ns: [number, number];
  curves: MemoryCurve[];
  texts: Texts;
}

/** Columns of changes: bytes held after each, and what caused it. */
export interface MemoryCurve {
  title: string;
  time_ns: number[];
  nbytes: number[];
  change: number[];
  event: number[];
  name: number[];
  line: number[];
  peak: MemoryPoint;
}

/** `MemoryChart._points`. */
export interface MemoryPoint {
  time_ns: number;
  nbytes: number;
  change: number;
  event: number;
  name: number;
  line: number;
}

export interface MemoryFirst extends MemoryWindow {
  whole_ns: number;
  largest: LargestAllocations;
}

/** `memory_chart.largest_allocations`. */
export interface LargestAllocations extends Rows {
  event: number[];
  name: number[];
  line: number[];
  columns: Column[];
}

/** `memory_page.PurposesTab.first`. */
export interface PurposesFirst {
  whole_ns: number;
  time_ns: number[];
  /** From the bottom to the top. */
  purposes: Purpose[];
  peak: number;
  /** Says how many moments were left out. */
  note: string;
}

/** `memory_page._purpose`. */
export interface Purpose {
  title: string;
  colour: string;
  nbytes: number[];
}
