// Elements from names, attributes and children. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @import { Attributes, SvgAttributes } from "./types/surroundings"
 * @import { Family } from "./types/messages"
 * @typedef {Node | string | null | undefined} Child
 */

/**
 * @template {Element & ElementCSSInlineStyle} Made
 * @param {Made} element
 * @param {Attributes | SvgAttributes} attributes
 * @param {Child[]} children
 */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "text") element.textContent = String(value);
    // A content policy may forbid the attribute, and allows the property.
    else if (name === "style") element.style.cssText = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function h(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {SvgAttributes} attributes
 * @param {Child[]} children
 */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {Attributes} attributes @param {Child[]} children */
export function button(attributes, ...children) {
  return h("button", { type: "button", class: "mtprof-button", ...attributes }, ...children);
}

/** A button that looks like a link. @param {string} text @param {string} title @param {() => void} onclick */
export const link = (text, title, onclick) => button({ class: "mtprof-link", text, title, onclick });

/** A word that a narrow panel leaves out. @param {string} text */
export const word = (text) => h("span", { class: "mtprof-word", text });

/**
 * A list to choose by what; an option with a flag was not recorded, and cannot be chosen.
 * @param {string} label
 * @param {{ key: string, title: string, flag?: string }[]} options
 * @param {(key: string) => void} onchoose
 */
export function choiceBy(label, options, onchoose) {
  const entries = options.map(({ key, title, flag }) =>
    h("option", { value: key, disabled: Boolean(flag), text: flag ? `${title} (${flag})` : title }),
  );
  const onchange = () => onchoose(select.value);
  const select = h("select", { class: "mtprof-input mtprof-select", "aria-label": label, onchange }, ...entries);
  return { select, field: h("label", { class: "mtprof-field" }, word("by "), select) };
}

/**
 * The colours of a chart, and what each stands for.
 * @param {Pick<Family, "title" | "colour">[]} kinds
 */
export function legend(kinds, label = "Colours of op families") {
  const entries = kinds.map(({ title, colour }) =>
    h(
      "span",
      { class: "mtprof-legend-entry" },
      h("span", { class: "mtprof-swatch", style: `background:${colour}` }),
      title,
    ),
  );
  return h("div", { class: "mtprof-legend", role: "note", "aria-label": label }, ...entries);
}

/** Calls `act` once no further call has come for `wait` milliseconds. @param {() => void} act @param {number} wait */
export function settled(act, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
}

/**
 * Wraps a question so that only the last answer counts: null where it was asked again meanwhile.
 * @template {unknown[]} Args
 * @template Answer
 * @param {(...args: Args) => Promise<Answer>} ask
 * @returns {(...args: Args) => Promise<Answer | null>}
 */
export function latest(ask) {
  let asked = 0;
  return async (...args) => {
    const number = ++asked;
    const answer = await ask(...args);
    return number === asked ? answer : null;
  };
}
