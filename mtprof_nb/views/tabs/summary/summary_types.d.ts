// The overview tab: summary_tab.py. Times are whole nanoseconds, shares are texts.

/** `SummaryTab.first`. */
export interface SummaryFirst {
  sentence: string;
  /** Where the lines and ops took this time, as " on the GPU"; "" for the host. */
  on: string;
  lines: SlowLine[];
  ops: SlowOp[];
  functions: SlowFunction[];
  waits: { title: string; ns: number; share: string }[];
  compilations: Compiled[];
  /** Sentences, one for each line that breaks graphs. */
  breaks: string[];
  findings: ShownFinding[];
  /** Shown where there is no finding. */
  nothing: string;
  /** Sentences about the recording itself. */
  notes: string[];
}

/** A line of source. `id` is its number in the lines tab, -1 if it ran no ops. */
export interface LineLink {
  id: number;
  location: string;
  text: string;
}

/** `summary_tab._line`. */
export interface SlowLine extends LineLink {
  time_ns: number;
  share: string;
}

/** `SummaryTab._ops`. */
export interface SlowOp {
  /** The row of the operators tab, grouped by op. */
  id: number;
  label: string;
  name: number;
  count: number;
  time_ns: number;
  share: string;
}

/** `summary_tab._function`: its own time in Python code and in waiting, an estimate. */
export interface SlowFunction {
  label: string;
  location: string;
  outside_ns: number;
  /** The estimate is wrong by more than this in 5 of 100 recordings; null where it is not known. */
  error_ns: number | null;
  share: string;
}

/** `summary_tab._compilation`. */
export interface Compiled {
  label: string;
  location: string;
  why: string;
  /** The time of each stage in words. */
  stages: string;
  time_ns: number;
  share: string;
}

/** `summary_tab._finding`. */
export interface ShownFinding extends LineLink {
  rule: string;
  title: string;
  evidence: string;
  /** Lines of code. */
  fix: string[];
  bound: string;
  certainty: string;
}
