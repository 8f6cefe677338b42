// Elements from names, attributes and children. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes `on…` adds a listener, `text` sets the text, null leaves an attribute out
 * @param {(Node | string | null | undefined)[]} children
 */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** @returns {HTMLElement} */
export function h(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** A row of buttons of which one is pressed. */
export function choice(label, options, chosen, onchoose) {
  const buttons = options.map(({ key, title }) =>
    h("button", {
      type: "button",
      class: "mtprof-choice-option",
      "aria-pressed": String(key === chosen),
      text: title,
      onclick: () => {
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.key === key));
        onchoose(key);
      },
      "data-key": key,
    }),
  );
  return h("div", { class: "mtprof-choice", role: "group", "aria-label": label }, ...buttons);
}

/** The colours of the op families that a chart shows. */
export function legend(families) {
  const entries = families.map(({ title, colour }) =>
    h("span", { class: "mtprof-legend-entry" }, h("span", { class: "mtprof-swatch", style: `background:${colour}` }), title),
  );
  return h("div", { class: "mtprof-legend", role: "note", "aria-label": "Colours of op families" }, ...entries);
}

/** Calls `act` once no further call has come for `wait` milliseconds. */
export function settled(act, wait) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), wait);
  };
}
