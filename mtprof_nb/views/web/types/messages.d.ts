// Messages between the page and Python, tab by tab. Beside each stands the Python function that reads or writes it.
// Times are whole nanoseconds.

import type {
  DifferencesFirst,
  SideBySideFirst,
  TwoTimelinesFirst,
  TwoWindows,
} from "../../tabs/differences/comparison_types";
import type { EventRows, LitSlices, Pairs, TwoWholes, WholeTimeline } from "./carried";
import type { Cause, DeviceBar, Gaps, Launches } from "../../tabs/timeline/devices_types";
import type { MemoryFirst, MemoryWindow } from "../../tabs/memory/memory_types";
import type { RanksFirst } from "../../tabs/ranks/ranks_types";
import type { StepsFirst } from "../../tabs/steps/steps_types";
import type { SummaryFirst } from "../../tabs/summary/summary_types";

export type TabName = keyof Firsts;
export type Phase = "forward" | "backward" | "optimizer" | "other" | "compiling";
export type Unit =
  | ("count" | "time" | "share" | "bytes" | "flops" | "held" | "percent" | "rate")
  | ("change" | "ratio" | "text" | "words" | "rank");

/** The state of the widget: `widget.Panel`. */
export interface PanelState {
  tabs: { name: TabName; title: string }[];
  /** A table alone has no strip. */
  strip: Strip | { title?: undefined };
  /** The initial content of each tab, packed; a missing tab was never opened. */
  first: Partial<Record<TabName, DataView<ArrayBuffer>>>;
  /** Processes that can be shown alone: their positions and titles; none on a page without Python. */
  ranks: { process: number; title: string }[];
  page: string;
  /** The tab that a page opens with. */
  opened?: TabName;
}

/** `Strip.written`. */
export interface Strip {
  title: string;
  figures: { title: string; text: string; meaning: string }[];
  phases: PhaseShare[];
  whole: string;
  profiler: string;
  /** Which side waits for which, the host or its devices; "" where it is not clear. */
  sentence: string;
  devices: DeviceBar[];
  notes: string[];
}

export interface PhaseShare {
  phase: string;
  ns: number;
  text: string;
}

/** What comes with the buffers of an answer: `widget.Panel._on_message`. */
export interface Reply {
  number: string;
  error?: string;
}

/** A tab without data: the reason. */
export interface Empty {
  empty: string;
}

/** The initial content of each tab: `first` of its Python class, if it is not `Empty`. */
export interface Firsts {
  summary: SummaryFirst;
  ranks: RanksFirst;
  operators: OperatorsFirst;
  lines: LinesFirst;
  steps: StepsFirst;
  timeline: TimelineFirst;
  stacks: StacksFirst;
  memory: MemoryFirst;
  differences: DifferencesFirst;
  side_by_side: SideBySideFirst;
  two_timelines: TwoTimelinesFirst;
}

/** Answers of the tabs by what was asked: `answer` of each tab's Python class. A whole is null if it is too long. */
export interface Answers {
  operators: { rows: OperatorsTable; lit: Pairs; events: EventRows | null; row_of: { row: number } };
  lines: { ops: LineOps; lit: Pairs };
  timeline: { whole: WholeTimeline | null; window: TimelineWindow; launches: Launches };
  stacks: { chart: StackChart; lit: LitSlices };
  memory: { whole: MemoryWindow | null; window: MemoryWindow };
  two_timelines: { whole: TwoWholes | null; window: TwoWindows };
}

/** Questions whose answers never change, so that a page asks them once; a page without Python carries the answers. */
export type LastingQuestion =
  | { tab: "operators"; ask: "rows" | "lit" | "events"; grouping: string }
  | { tab: "lines"; ask: "ops"; id: number }
  | { tab: "lines"; ask: "lit"; grouping: string }
  | { tab: "stacks"; ask: "chart"; metric: string }
  | { tab: "stacks"; ask: "lit"; metric: string; grouping: string }
  | { tab: "timeline" | "memory" | "two_timelines"; ask: "whole" };

/** Questions about a recording that is too long to be sent whole. */
export type PassingQuestion =
  | { tab: "operators"; ask: "row_of"; grouping: string; event: number }
  | ({ tab: "timeline"; ask: "window"; selected: Selected | null } & DrawnWindow)
  | { tab: "timeline"; ask: "launches"; event: number }
  | { tab: "memory"; ask: "window"; begin_ns: number; end_ns: number }
  | ({ tab: "two_timelines"; ask: "window"; step: number } & DrawnWindow);

export type Question = LastingQuestion | PassingQuestion;

/** A window of time, and its width on the screen. */
export interface DrawnWindow {
  begin_ns: number;
  end_ns: number;
  pixels: number;
}

export type AnswerTo<Asked extends Question> = Asked extends { tab: infer Tab extends keyof Answers; ask: infer Ask }
  ? Ask extends keyof Answers[Tab]
    ? Answers[Tab][Ask]
    : never
  : never;

/** Questions that are answered by no packed value. */
export type Request = { ask: "hello" } | { tab: TabName; ask: "first" };

/** What the view that asks has selected: a row under a grouping, or under "source" a line. `selection.py`. */
export interface Selected {
  grouping: string;
  row: number;
}

// The operators tab: operators_tab.py.

export interface Family {
  title: string;
  colour: string;
  ink: string;
}

export interface Column {
  key: string;
  title: string;
  unit: Unit;
  meaning: string;
  /** Of a column of shares, the column whose shares they are. */
  of: string;
}

/** Columns of rows; a row is a position in each of them. A value that is null has no end, or is not known. */
export interface Rows {
  id: number[];
  label: string[];
  detail: string[];
  family?: number[];
  value: Record<string, (number | null)[]>;
  /** Columns of texts, and what shows on hover. */
  text?: Record<string, string[]>;
  hint?: Record<string, string[]>;
}

/** `operators_tab._written`. */
export interface OperatorRows extends Rows {
  family: number[];
  name: number[];
}

/** `OperatorsTab._table`. */
export interface OperatorsTable {
  grouping: string;
  /** The column that they are sorted by, descending. */
  sort: string;
  columns: Column[];
  /** The first of them. */
  rows: OperatorRows;
  total: number;
  /** The whole of each column that has shares. */
  wholes: Record<string, number>;
}

export interface OperatorsFirst extends OperatorsTable {
  groupings: { key: string; title: string; flag: string }[];
  limit: number | null;
  families: Family[];
}

// The lines tab: lines_tab.py.

export interface LinesFirst {
  note: string;
  hint: string;
  whole_ns: number;
  largest_ns: number;
  /** What the time outside ops is called, null where nothing is known of it. */
  outside: string | null;
  memory: { title: string; meaning: string } | null;
  /** Whether lines have their time on the ranks. */
  has_ranks: boolean;
  /** The most time on devices of a line, 0 without a device. */
  largest_device_ns: number;
  phases: Phase[];
  files: ListedFile[];
  rest: CostOfOps[];
  /** Ops of the longest lines, by the id of the line. */
  ops: Record<number, OpOfLine[]>;
}

/** `LinesTab._written`. */
export interface ListedFile {
  title: string;
  self_ns: number;
  outside_ns: number;
  /** null marks omitted lines. */
  lines: (ListedLine | null)[];
}

/** A line of source: with ops, with time outside ops alone, or with nothing. */
export type ListedLine = { line: number } & (CostOfOps | (Partial<Times> & { id?: undefined; text: string }));

/** `lines_tab._times`. */
export interface Times {
  time_ns: number;
  outside_ns: number | null;
  total_ns: number;
  /** With several ranks, the median and the most time of one, and the one with the most. */
  median_ns?: number;
  most_ns?: number;
  most_on?: string;
  /** Lines with which it shares fused kernels: its part of their time is an estimate. */
  fused_with?: string;
}

/** `lines_tab._cost`. */
export interface CostOfOps extends Times {
  /** The number of the line, -1 for what belongs to no line. */
  id: number;
  text: string;
  location: string;
  phases: Record<Phase, number>;
  count: number;
  bytes: number | null;
  device_ns: number | null;
  device_phases: Record<Phase, number> | null;
}

/** `LinesTab.answer`. */
export interface LineOps {
  ops: OpOfLine[];
}

export type OpOfLine =
  | { name: number; label: string; phase: Phase; count: number; self_ns: number; event: number }
  | { parameter: string; count: number; self_ns: number }
  | { more: number };

// Charts: event_facts.py.

/** Texts by their positions in the trace, which columns point to: `event_facts.texts_of`. */
export interface Texts {
  names: Record<number, string>;
  shapes: Record<number, string>;
  /** Source locations, by the number of the line. */
  lines: Record<number, string>;
}

/** Columns of facts about events; -1 where a fact is not known. `event_facts.event_facts`. */
export interface EventFacts {
  event: number[];
  name: number[];
  took_ns: number[];
  self_ns: number[];
  phase: number[];
  step: number[];
  /** The name of the op that a kernel belongs to. */
  op: number[];
  shape: number[];
  line: number[];
}

// The timeline tab: timeline_tab.py and timeline_blocks.py. Times are since the beginning of the whole.

/** `Timeline.window`. */
export interface TimelineWindow {
  drawn_ns: [number, number];
  /** The time that a pixel had. */
  pixel_ns: number;
  /** Neighbours shorter than this were merged. */
  merged_ns: number;
  /** Neighbours shorter than this stay merged however far one zooms, for the page has no finer detail. */
  finest_ns?: number;
  blocks: Blocks;
  bars: Bars;
  texts: Texts;
  phases: Phases;
  gaps: Gaps;
  steps: { number: number[]; start_ns: number[] };
}

/** Single events, or neighbours of one row that are too short to draw apart. */
export interface Blocks {
  row: number[];
  start_ns: number[];
  length_ns: number[];
  count: number[];
  time_ns: number[];
  /** Whether a block has selected events; null without a selection. */
  lit: boolean[] | null;
}

/** Parts of blocks by family, in the order of the blocks; the facts are of the longest event of each. */
export interface Bars extends EventFacts {
  block: number[];
  family: number[];
  count: number[];
  time_ns: number[];
}

/** `PhaseRibbon.window`. */
export interface Phases {
  lane: number[];
  start_ns: number[];
  length_ns: number[];
  phase: number[];
}

/** A lane, in rows from the top: `Timeline.lane_rows`. */
export interface Lane {
  title: string;
  top: number;
  bottom: number;
  rows: number;
  rows_top: number;
}

export interface TimelineFirst extends TimelineWindow {
  whole_ns: number;
  busy: number[];
  lanes: Lane[];
  has_steps: boolean;
  families: Family[];
  /** The families that occur. */
  legend: number[];
  /** Causes of idle time, in the order of their codes; none without a device. */
  causes: Cause[];
  collections: Collections;
}

/** The longest garbage collections: `drawn_collections`. */
export interface Collections {
  lane: number[];
  start_ns: number[];
  length_ns: number[];
  generation: number[];
}

// The stacks tab: stack_charts.py.

/** `StackChart.chart`. */
export interface StackChart {
  metric: string;
  title: string;
  unit: "time" | "count" | "bytes";
  slices: Slices;
  /** Functions above the root that called nothing else, innermost first. */
  called_by: string[];
}

/** Columns of slices, the root first. */
export interface Slices {
  /** The position of the caller, -1 for the root. */
  parent: number[];
  label: string[];
  full: string[];
  total: number[];
  own: number[];
  /** How many small slices it stands for, 0 for a slice of its own. */
  folded: number[];
  fill: number[];
  /** The installed package of a frame, or "Python"; "" for frames of the user, for ops and for the root. */
  library: string[];
  event: number[];
  name: number[];
  line: number[];
  /** With several ranks, how much the slice differs between them; null otherwise. */
  ranks: string[] | null;
  /** The page adds whether there are selected events: 2 its own, 1 below it, 0 neither. None without a selection. */
  lit?: number[] | null;
}

export interface StacksFirst extends StackChart {
  metrics: { key: string; title: string }[];
  note: string;
  fills: Family[];
  /** Whether frames of libraries are folded at first. */
  folds: boolean;
}
