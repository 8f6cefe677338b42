// Colours of the page the panel stands on, read anew whenever the theme changes.

/** @param {Element} element a part of the panel */
export function colours(element) {
  const style = getComputedStyle(element);
  /** @param {string} name */
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--mtprof-text"),
    quiet: read("--mtprof-quiet"),
    line: read("--mtprof-line"),
    grid: read("--mtprof-grid"),
    paper: read("--mtprof-paper"),
    raised: read("--mtprof-raised"),
    accent: read("--mtprof-accent"),
    font: style.fontFamily,
  };
}

/** @typedef {ReturnType<typeof colours>} Colours */

/**
 * Calls `changed` when the notebook or the system turns light or dark.
 * @param {Element} element
 * @param {() => void} changed
 * @param {AbortSignal} signal ends it
 */
export function watchTheme(element, changed, signal) {
  let before = JSON.stringify(colours(element));
  const look = () => {
    const now = JSON.stringify(colours(element));
    if (now !== before && !signal.aborted) changed();
    before = now;
  };
  // The new style sheet arrives a little after the attribute.
  const later = () => {
    for (const wait of [0, 150, 600]) setTimeout(look, wait);
  };
  const observer = new MutationObserver(later);
  const themed = ["data-jp-theme-light", "data-jp-theme-name", "class", "data-vscode-theme-kind", "theme"];
  observer.observe(document.body, { attributes: true, attributeFilter: themed });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: themed });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", later, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
}
