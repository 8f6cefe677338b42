// Messages about devices: bars of the strip, and gaps and launches on a timeline. Times are whole nanoseconds.

/** The time of a device from its first kernel to its last: `DeviceBar.written`. */
export interface DeviceBar {
  title: string;
  parts: DevicePart[];
}

export interface DevicePart {
  title: string;
  colour: string;
  meaning: string;
  ns: number;
  text: string;
}

/** Gaps of devices, or neighbours together: an entry for each cause, with its time in them. `IdleRibbon.window`. */
export interface Gaps {
  lane: number[];
  start_ns: number[];
  length_ns: number[];
  cause: number[];
  count: number[];
  time_ns: number[];
}

/** Arrows from calls to the kernels that they launched, in rows and times. `launches.launches_of`. */
export interface Launches extends Arrows {
  /** How many there are, of which the first are here. */
  total: number;
}

export interface Arrows {
  from_row: number[];
  from_ns: number[];
  to_row: number[];
  to_ns: number[];
}

export interface Cause {
  title: string;
  colour: string;
}
