import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { keepKeys } from "#panel/web/keys.js";

// Elements as far as keys need them: a tree, listeners, attributes and the focus.
class StandIn extends EventTarget {
  attributes = new Set();
  focused = 0;

  constructor(parentElement = null) {
    super();
    this.parentElement = parentElement;
  }

  contains(other) {
    for (let at = other; at; at = at.parentElement) if (at === this) return true;
    return false;
  }

  closest() {
    return this;
  }

  focus() {
    this.focused++;
  }

  toggleAttribute(name, on) {
    this.attributes[on ? "add" : "delete"](name);
  }
}
globalThis.Element = StandIn;
globalThis.HTMLInputElement = class extends StandIn {
  value = "";
};

let cell;
let root;
beforeEach(() => {
  globalThis.window = new EventTarget();
  cell = new StandIn();
  root = new StandIn(cell);
});

/** Sends a key through the window, as the capturing phase does, and to the panel. Tells whether the notebook hears it. */
function press(target, key, modifiers = {}) {
  let stopped = false;
  const event = () =>
    Object.defineProperties(Object.assign(new Event("keydown"), { key, ...modifiers }), {
      target: { value: target },
      stopPropagation: { value: () => (stopped = true) },
    });
  window.dispatchEvent(event());
  root.dispatchEvent(event());
  return !stopped;
}

test("single letters stay in the panel, and the application's shortcuts pass", () => {
  keepKeys(root, new AbortController().signal);

  assert.equal(press(root, "d"), false);
  assert.equal(press(root, "ArrowDown"), false);
  assert.equal(press(root, "s", { ctrlKey: true }), true);
  assert.equal(press(root, "s", { metaKey: true }), true);
  assert.equal(press(root, "s", { ctrlKey: true, altKey: true }), false);
});

test("shortcuts that edit text or cells stay in the panel", () => {
  keepKeys(root, new AbortController().signal);

  assert.deepEqual(
    [..."acvxyz"].map((key) => press(root, key, { ctrlKey: true })),
    Array(6).fill(false),
  );
  assert.equal(press(root, "M", { ctrlKey: true, shiftKey: true }), false);
  assert.equal(press(root, "C", { ctrlKey: true, shiftKey: true }), true);
});

test("the focused element says whether the notebook may act on the key, until the panel is gone", () => {
  const [ending, button] = [new AbortController(), new StandIn(root)];
  keepKeys(root, ending.signal);

  press(button, "d");
  assert.deepEqual([...button.attributes], ["data-lm-suppress-shortcuts"]);
  press(button, "s", { ctrlKey: true });
  assert.deepEqual([...button.attributes], []);
  press(cell, "d");
  assert.deepEqual([...cell.attributes], []);
  ending.abort();
  press(button, "d");
  assert.deepEqual([...button.attributes], []);
});

test("Escape hands the focus to the notebook, but in a filter with text it clears that first", () => {
  const input = new HTMLInputElement(root);
  keepKeys(root, new AbortController().signal);

  input.value = "mm";
  assert.equal(press(input, "Escape"), true);
  assert.equal(cell.focused, 0);
  input.value = "";
  press(input, "Escape");
  assert.equal(cell.focused, 1);
});
