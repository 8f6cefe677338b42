// Numbers as people read them: three significant digits and a unit, as the Python side writes them.

const MINUS = "\u2212";
/** Units of a quantity, the smallest first. */
const TIMES = { µs: 1e3, ms: 1e6, s: 1e9 };
const SECONDS = { µs: 1e-6, ms: 1e-3, s: 1 };
const BYTES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const RATES = { "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12 };
const FLOPS = { FLOP: 1, kFLOP: 1e3, MFLOP: 1e6, GFLOP: 1e9, TFLOP: 1e12, PFLOP: 1e15 };

/** @param {number} value @returns {string} */
export function digits(value) {
  if (value === 0) return "0";
  if (Math.abs(value) < 0.9995) return value.toFixed(3);
  const magnitude = Number(Math.abs(value).toExponential(2).split("e")[1]);
  if (Math.abs(value) >= 999.5) return number(Math.round(value / 10 ** (magnitude - 2)) * 10 ** (magnitude - 2));
  return value.toFixed(2 - magnitude);
}

/** @param {number} value @param {Record<string, number>} units */
function scaled(value, units) {
  const size = Math.abs(value);
  const scales = Object.entries(units);
  const [unit, scale] = scales.find(([, step]) => size / step < 999.5) ?? scales[scales.length - 1];
  const written = scale === 1 && Number.isInteger(size) ? number(size) : digits(size / scale);
  return `${value < 0 ? MINUS : ""}${written} ${unit}`;
}

/** @param {number} count */
export const number = (count) => count.toLocaleString("en-US", { maximumFractionDigits: 0 });
/** @param {number} ns */
export const duration = (ns) => scaled(ns, TIMES);
/** @param {number} count */
export const nbytes = (count) => scaled(count, BYTES);
/** @param {number} count */
export const flops = (count) => (count ? scaled(count, FLOPS) : "–");

/** @param {number} part @param {number} whole @returns {string} */
export function share(part, whole) {
  if (!whole) return "–";
  const percent = (100 * part) / whole;
  return percent === 0 ? "0 %" : percent < 0.05 ? "<0.1 %" : `${percent.toFixed(1)} %`;
}

/** A share in percent, which may not be known. @param {number} value */
const percent = (value) => (value < 0 ? "–" : `${value} %`);
/** @param {number} count of bytes a second */
const rate = (count) => (count ? scaled(count, RATES) : "–");
/** @param {number} ns */
const held = (ns) => (Number.isFinite(ns) ? duration(ns) : "to the end");

/** @param {number} ns */
const change = (ns) => `${ns > 0 ? "+" : ""}${duration(ns)}`;
/** @param {number} value */
function ratio(value) {
  if (value >= 10) return digits(value);
  return value >= 0.1 || !value ? value.toFixed(2) : value >= 0.001 ? value.toFixed(3) : "<0.001";
}

/** @param {number} place of a rank, -1 for none */
const rank = (place) => (place < 0 ? "–" : `rank ${place}`);

export const writers = {
  time: duration,
  bytes: nbytes,
  flops,
  count: number,
  held,
  percent,
  rate,
  change,
  ratio,
  rank,
};

/**
 * One line of CSV. A text that a spreadsheet would take for a formula is kept a text.
 * @param {(string | number | null)[]} cells
 */
export function csvLine(cells) {
  /** @param {string | number | null} cell */
  const safe = (cell) => (typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell));
  return cells
    .map((cell) => (/[",\n\r]/.test(safe(cell)) ? `"${safe(cell).replaceAll('"', '""')}"` : safe(cell)))
    .join(",");
}

/**
 * Round moments of a window, and what is written at each.
 * @param {number} begin seconds
 * @param {number} end seconds
 * @param {number} most how many fit
 */
export function timeTicks(begin, end, most) {
  const rough = Math.max((end - begin) / Math.max(most, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999) ?? 10 * power;
  const first = Math.ceil(begin / step - 1e-6);
  /** @type {number[]} */
  const values = [];
  for (let index = first; index * step <= end + step * 1e-6; index++) values.push(index * step);
  const apart = step < end / 2000;
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const text = values.map((value, index) => {
    if (!apart) return plainTime(value, step, end);
    // Far from the beginning the first mark has its time, and the others the time since it.
    return index === 0 ? `${value.toFixed(decimals)} s` : `+${plainTime(value - values[0], step, end - begin)}`;
  });
  return { values, text };
}

/**
 * A moment in the unit that suits the window, with as many decimals as the step needs.
 * @param {number} seconds
 * @param {number} step
 * @param {number} reach
 */
function plainTime(seconds, step, reach) {
  const scales = Object.entries(SECONDS);
  const [unit, scale] = scales.findLast(([, size]) => reach >= size) ?? scales[0];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
  return `${(seconds / scale).toFixed(decimals)} ${unit}`;
}
