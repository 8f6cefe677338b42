// The strip on top: key figures, and a bar with the shares of the phases.

import { h } from "./dom.js";
import { duration } from "./format.js";

/**
 * @import { Strip } from "./types/messages"
 * @import { DeviceBar } from "../tabs/timeline/devices_types"
 */

/** The pattern of a phase: of "outside ops" the first word. @param {string} phase */
const phaseClass = (phase) => `mtprof-phase-${phase.split(" ")[0]}`;

/**
 * Parts of a bar, as long as the times of their phases, and the times in words.
 * @param {Record<string, number>} times
 */
export function phaseParts(times) {
  const spent = Object.entries(times).filter(([, ns]) => ns > 0);
  const parts = spent.map(([phase, ns]) =>
    h("div", { class: `mtprof-phase ${phaseClass(phase)}`, style: `flex-grow:${ns}` }),
  );
  return { parts, spoken: spent.map(([phase, ns]) => `${phase} ${duration(ns)}`).join(", ") };
}

/** A phase in a legend: its pattern, and words after it. @param {string} phase @param {(Node | string)[]} words */
export function phaseKey(phase, ...words) {
  const swatch = h("span", { class: `mtprof-phase-swatch ${phaseClass(phase)}` });
  return h("span", { class: "mtprof-phase-key" }, swatch, ...words);
}

/** @param {Strip} strip */
export function stripOf(strip) {
  const figures = strip.figures.map(({ title, text, meaning }) =>
    h(
      "div",
      { class: "mtprof-figure", role: "listitem", title: meaning },
      h("div", { class: "mtprof-figure-title", text: title }),
      h("div", { class: "mtprof-figure-text", text }),
    ),
  );
  return h(
    "header",
    { class: "mtprof-strip" },
    h("div", { class: "mtprof-title", text: strip.title, title: strip.title }),
    strip.sentence ? h("div", { class: "mtprof-sentence", text: strip.sentence }) : null,
    ...strip.notes.map((note) => h("div", { class: "mtprof-note", role: "note", text: note })),
    h("div", { class: "mtprof-figures", role: "list" }, ...figures),
    strip.phases.length ? phaseBar(strip) : null,
    ...strip.devices.map(deviceBar),
  );
}

/** @param {Strip} strip */
function phaseBar({ phases, whole: of, profiler }) {
  const whole = phases.reduce((sum, { ns }) => sum + ns, 0);
  const spoken = phases.map(({ phase, text }) => `${phase} ${text}`).join(", ");
  const parts = phases.map(({ phase, ns, text }) => {
    const style = `flex-grow:${ns / whole}`;
    return h("div", { class: `mtprof-phase ${phaseClass(phase)}`, style, title: `${phase} ${text}` });
  });
  const keys = phases.map(({ phase, text }) => phaseKey(phase, `${phase} `, h("b", { text })));
  return bar(`${of}: ${spoken}`, parts, [h("b", { text: of }), ...keys, ...(profiler ? [profiler] : [])]);
}

/** @param {string} label @param {HTMLElement[]} parts @param {(HTMLElement | string)[]} keys */
function bar(label, parts, keys) {
  return h(
    "div",
    { class: "mtprof-phases", role: "img", "aria-label": label },
    h("div", { class: "mtprof-phase-bar" }, ...parts),
    h("div", { class: "mtprof-phase-keys" }, ...keys),
  );
}

/** The time of a device by its kinds, each with a colour. @param {DeviceBar} device */
function deviceBar({ title: device, parts }) {
  const spoken = parts.map(({ title, text }) => `${title} ${text}`).join(", ");
  const drawn = parts.map(({ title, colour, ns, text, meaning }) => {
    const style = `flex-grow:${ns};background:${colour}`;
    return h("div", { class: "mtprof-phase", style, title: `${device}, ${title} ${text}: ${meaning}` });
  });
  const keys = parts.map(({ title, colour, text, meaning }) =>
    h(
      "span",
      { class: "mtprof-phase-key", title: meaning },
      h("span", { class: "mtprof-phase-swatch", style: `background:${colour}` }),
      `${title} `,
      h("b", { text }),
    ),
  );
  return bar(`${device}: ${spoken}`, drawn, [h("b", { class: "mtprof-device", text: device }), ...keys]);
}
