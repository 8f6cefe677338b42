// Names that must fit: measured, and cut with an ellipsis.

const measure = document.createElement("canvas").getContext("2d");
const SHORTEST = 3;
/** What autograd's engine puts before the name of a node. */
const ENGINE_PREFIX = "autograd::engine::evaluate_function: ";
/** @type {Map<string, Map<string, number>>} widths of texts by font */
const widths = new Map();
/** Widths are forgotten when there are so many. */
const MOST_WIDTHS = 20_000;

/**
 * A name without what kernels in C++ have in common: types of results, namespaces of PyTorch, and parameters.
 * @param {string} name
 */
export function plainName(name) {
  const text = name.replace(/^void |\(anonymous namespace\)::|at::native::/g, "");
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "<") depth++;
    else if (text[at] === ">") depth--;
    // Parameters follow at once; what stands in parentheses after a space belongs to the name.
    else if (text[at] === "(" && depth === 0 && at > 0 && text[at - 1] !== " ") return text.slice(0, at);
  }
  return text;
}

/** An op's name without its namespace and without the engine's prefix: `mm` for `aten::mm`. @param {string} name */
export function shortName(name) {
  const text = name.startsWith(ENGINE_PREFIX) ? name.slice(ENGINE_PREFIX.length) : plainName(name);
  const [bare] = text.split("<", 1);
  return (bare || text).split("::").pop() || text;
}

/**
 * A source location without folders: `model.py:12` for `/home/me/model.py:12`. Texts and commas may stand before it.
 * Code and names are no locations: a slash in them divides, or belongs to the name.
 * @param {string} location
 */
export const shortLocation = (location) => location.replace(/(^|, )(?:(?!, ).)*[/\\](?=[^/\\]+$)/, "$1");

/** How wide a text is, in pixels. @param {string} text @param {string} font */
export function textWidth(text, font) {
  const known = widths.get(font) ?? new Map();
  if (!measure || known.has(text)) return known.get(text) ?? 0;
  if (known.size >= MOST_WIDTHS) known.clear();
  measure.font = font;
  const { width } = measure.measureText(text);
  widths.set(font, known.set(text, width));
  return width;
}

/**
 * `text`, with its middle left out where it is wider: its beginning and its end distinguish names.
 * @param {string} text
 * @param {number} pixels
 * @param {string} font
 */
export function fittedMiddle(text, pixels, font) {
  if (textWidth(text, font) <= pixels) return text;
  /** @param {number} count */
  const kept = (count) => `${text.slice(0, Math.ceil(count / 2))}…${text.slice(text.length - Math.floor(count / 2))}`;
  let count = text.length - 1;
  while (count > 2 * SHORTEST && textWidth(kept(count), font) > pixels) count--;
  return kept(count);
}

/**
 * As much of `text` as fits into so many pixels; empty where hardly a letter would.
 * @param {string} text
 * @param {number} pixels
 * @param {string} font
 */
export function fitted(text, pixels, font) {
  if (pixels <= 0) return "";
  if (textWidth(text, font) <= pixels) return text;
  let [fits, fails] = [0, text.length];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    if (textWidth(`${text.slice(0, middle)}…`, font) <= pixels) fits = middle;
    else fails = middle;
  }
  return fits >= SHORTEST ? `${text.slice(0, fits).trimEnd()}…` : "";
}
