// Messages of the memory tab: memory_tab.py.

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
  /** From the bottom to the top; none where no kind is known. */
  kinds: MemoryKind[];
}

/** The bytes of one kind at each change. */
export interface MemoryKind {
  title: string;
  colour: string;
  nbytes: number[];
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
  /** The position of the curve that is shown alone at first, -1 for all. */
  device: number;
  largest: LargestAllocations;
}

/** `memory_tab.largest_allocations`. */
export interface LargestAllocations extends Rows {
  event: number[];
  name: number[];
  line: number[];
  columns: Column[];
}
