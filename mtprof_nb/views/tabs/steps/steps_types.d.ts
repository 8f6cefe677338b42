// The steps tab: steps_tab.py. Times are whole nanoseconds.

/** `StepsTab.first`. Columns have an entry for each bar. */
export interface StepsFirst {
  sentence: string;
  /** Whether a bar is the longest of several steps. */
  thinned: boolean;
  median_ns: number;
  number: number[];
  duration_ns: number[];
  /** Time by phase, and outside ops. */
  parts: Record<string, number[]>;
  slow: SlowStep[];
}

/** `steps_tab._slow`. */
export interface SlowStep {
  number: number;
  duration_ns: number;
  differences: StepDifference[];
}

/** `steps_tab._difference`. `id` is the number of a line in the lines tab, -1 for something else. */
export interface StepDifference {
  id: number;
  location: string;
  ns: number;
  usual_ns: number;
}
