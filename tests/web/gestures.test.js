import assert from "node:assert/strict";
import { test } from "node:test";
import { listen } from "#panel/web/drawing/gestures.js";

/** A chart of 1,000 ns over 1,000 pixels, which keeps what gestures ask of it. */
function chart(window = [0, 1_000]) {
  const asked = [];
  const keep = (name) => (value) => asked.push([name, value]);
  const listeners = {};
  const element = { addEventListener: (name, listener) => (listeners[name] = listener), setPointerCapture() {} };
  const made = {
    element,
    window,
    whole: [0, 1_000],
    dragmode: "zoom",
    momentAt: (x) => window[0] + (x / 1_000) * (window[1] - window[0]),
    go: keep("go"),
    zoom: (factor, part) => asked.push(["zoom", factor, part]),
    pan: keep("pan"),
    frame: keep("frame"),
    point: keep("point"),
    click: () => asked.push(["click"]),
  };
  listen(made, { Escape: () => asked.push(["escape"]) });
  return { made, asked, fire: (name, event = {}) => listeners[name]({ button: 0, ...event }) };
}

const drag = (fire, from, to, event = {}) => {
  fire("pointerdown", { clientX: from, ...event });
  fire("pointermove", { clientX: to });
  fire("pointerup", { clientX: to });
};
const key = (name, event = {}) => ({ key: name, preventDefault() {}, stopPropagation() {}, ...event });

test("a drag zooms to what lies between its ends, whichever is first", () => {
  for (const [from, to] of [
    [300, 500],
    [500, 300],
  ]) {
    const { asked, fire } = chart();
    drag(fire, from, to);
    assert.deepEqual(asked, [
      ["point", null],
      ["frame", [300, 500]],
      ["frame", null],
      ["go", [300, 500]],
    ]);
  }
});

test("a drag beyond the edge zooms to the edge", () => {
  const { asked, fire } = chart([200, 400]);
  drag(fire, 500, 3_000);

  assert.deepEqual(asked.at(-1), ["go", [300, 400]]);
});

test("a press that hardly moves is a click", () => {
  const { asked, fire } = chart();
  drag(fire, 300, 302);

  assert.deepEqual(asked, [["frame", null], ["click"]]);
});

test("with Shift, the middle button, or in the mode for it, a drag moves the window", () => {
  for (const event of [{ shiftKey: true }, { button: 1 }]) {
    const { asked, fire } = chart([200, 400]);
    drag(fire, 500, 600, event);
    assert.deepEqual(
      asked.filter(([name]) => name === "go"),
      [["go", [180, 380]]],
    );
  }
  const { made, asked, fire } = chart([200, 400]);
  made.dragmode = "pan";
  drag(fire, 500, 400);
  assert.deepEqual(asked[1], ["go", [220, 420]]);
});

test("a double click brings the whole recording", () => {
  const { asked, fire } = chart([200, 400]);
  fire("dblclick");

  assert.deepEqual(asked, [["go", [0, 1_000]]]);
});

test("the wheel zooms at the pointer with Ctrl, pans with Shift, and else scrolls the page", () => {
  const { asked, fire } = chart([200, 400]);
  let prevented = 0;
  const wheel = (event) => fire("wheel", { clientX: 250, deltaY: 1, preventDefault: () => prevented++, ...event });
  wheel({});
  assert.deepEqual([asked, prevented], [[], 0]);
  wheel({ ctrlKey: true });
  wheel({ shiftKey: true, deltaY: -1 });

  assert.deepEqual(asked, [
    ["zoom", 1.4, 0.25],
    ["pan", -0.15],
  ]);
  assert.equal(prevented, 2);
});

test("keys zoom, pan and reset; those of the browser are left to it", () => {
  const { asked, fire } = chart([200, 400]);
  for (const name of ["+", "=", "-", "ArrowLeft", "ArrowRight", "0", "Escape", "x"]) fire("keydown", key(name));
  fire("keydown", key("0", { ctrlKey: true }));

  assert.deepEqual(asked, [
    ["zoom", 0.5, undefined],
    ["zoom", 0.5, undefined],
    ["zoom", 2, undefined],
    ["pan", -0.2],
    ["pan", 0.2],
    ["go", [0, 1_000]],
    ["escape"],
  ]);
});
