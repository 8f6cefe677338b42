// Keys pressed in the panel stay in the panel: a notebook takes single letters for commands, such as delete this cell.

const SUPPRESS = "data-lm-suppress-shortcuts";
/** With Ctrl or Cmd, these edit text or, with Shift too, cells; the other letters are for the application, such as save. */
const EDITING = { plain: "acvxyz", shifted: "mz" };

/** Whether a key that the panel has no use for goes on to the application around it. @param {KeyboardEvent} event */
function passes(event) {
  if (event.key === "Escape") return true;
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.length !== 1) return false;
  return !EDITING[event.shiftKey ? "shifted" : "plain"].includes(event.key.toLowerCase());
}

/**
 * Hands the focus to what stands around the panel, so that keys reach the notebook again.
 * @param {HTMLElement} root
 * @param {KeyboardEvent} event
 */
function leave(root, event) {
  // A filter with text in it is cleared first.
  if (event.target instanceof HTMLInputElement && event.target.value) return;
  /** @type {HTMLElement | null | undefined} */
  const around = root.parentElement?.closest("[tabindex]");
  around?.focus({ preventScroll: true });
}

/**
 * Keeps keys in `root`, but for those of the application around it; Escape leaves `root`.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal ends it
 */
export function keepKeys(root, signal) {
  // Notebook 7 looks at a key before it reaches the panel, and from the focused element upwards: only an attribute on
  // that element itself keeps it from handling the key.
  /** @param {KeyboardEvent} event */
  const mark = (event) => {
    if (event.target instanceof Element && root.contains(event.target))
      event.target.toggleAttribute(SUPPRESS, !passes(event));
  };
  window.addEventListener("keydown", mark, { capture: true, signal });
  for (const kind of /** @type {const} */ (["keydown", "keypress", "keyup"])) {
    root.addEventListener(kind, (event) => passes(event) || event.stopPropagation());
  }
  root.addEventListener("keydown", (event) => event.key === "Escape" && leave(root, event));
}
