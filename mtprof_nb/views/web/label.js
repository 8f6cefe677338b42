// Names that must fit: read out of plotly's labels, measured, and cut with an ellipsis.

const measure = document.createElement("canvas").getContext("2d");
const SHORTEST = 3;

/** The text of one of plotly's labels, which are a little HTML. @param {string} label */
export function plain(label, lineBreak = "\n") {
  return label
    .replace(/<br>/g, lineBreak)
    .replace(/<\/?b>/g, "")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&");
}

/** A text as one of plotly's labels. @param {string} text */
export const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** How wide a text is, in pixels. @param {string} text @param {string} font */
export function textWidth(text, font) {
  if (!measure) return 0;
  measure.font = font;
  return measure.measureText(text).width;
}

/**
 * `text`, with its middle left out where it is wider: its beginning and its end tell names apart.
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
