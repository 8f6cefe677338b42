// Frames of libraries folded: those of one package that call each other, or have one caller, are one slice.

/**
 * @import { Slices, StackChart } from "../../web/types/messages"
 * @typedef {object} Drawn more columns of slices that are drawn
 * @property {number[]} id the position of its first slice before folding, which stays while others fold
 * @property {number[]} frames how many frames it stands for
 * @typedef {Slices & Drawn} DrawnSlices
 * @typedef {Omit<StackChart, "slices"> & { slices: DrawnSlices }} DrawnChart
 */

/**
 * The chart with folded slices, but for those in `opened`, which are known by their `id`; null opens all.
 * @param {StackChart} chart
 * @param {Set<number> | null} opened
 * @returns {DrawnChart}
 */
export function foldedChart(chart, opened) {
  const { slices } = chart;
  return { ...chart, slices: opened ? new Folding(slices, opened).slices() : unfolded(slices) };
}

/** @param {Slices} slices @returns {DrawnSlices} */
function unfolded(slices) {
  return { ...slices, id: slices.parent.map((_, slice) => slice), frames: slices.parent.map(() => 1) };
}

/**
 * @typedef {object} Made a slice that is drawn
 * @property {number} id
 * @property {number} parent
 * @property {number} total
 * @property {number} own
 * @property {number} small how many small slices it stands for
 * @property {number} lit
 * @property {Set<string>} frames that are folded into it
 * @property {string} folds the library whose frames are folded into it, "" for none
 * @property {string} opens the library that was opened here, "" for none
 */

class Folding {
  #slices;
  #opened;
  /** @type {Made[]} */
  #made = [];
  /** @type {Map<string, number>} what is drawn under a caller, by what it is */
  #known = new Map();

  /** @param {Slices} slices @param {Set<number>} opened */
  constructor(slices, opened) {
    this.#slices = slices;
    this.#opened = opened;
    /** @type {number[]} the drawn slice of each slice; callers come before their callees */
    const drawn = [];
    for (const [slice, caller] of slices.parent.entries())
      drawn.push(this.#place(slice, caller < 0 ? -1 : drawn[caller]));
  }

  /** Returns what a slice is drawn as. @param {number} slice @param {number} caller which is drawn */
  #place(slice, caller) {
    const library = this.#slices.library[slice];
    const above = this.#made[caller];
    if (library && above?.folds === library) return this.#add(caller, slice, 0);
    const group = `${caller} library ${library}`;
    const first = this.#known.get(group);
    const isOpened = above?.opens === library || (first !== undefined && this.#made[first].opens === library);
    if (!library || isOpened) return this.#merged(this.#keyOf(caller, slice), slice, caller, "", library);
    const opens = this.#opened.has(slice) ? library : "";
    return this.#merged(group, slice, caller, opens ? "" : library, opens);
  }

  /** @param {number} caller @param {number} slice */
  #keyOf(caller, slice) {
    const { full, name, folded } = this.#slices;
    return `${caller} ${name[slice]} ${folded[slice] > 0} ${full[slice]}`;
  }

  /**
   * Adds a slice to the one of the same key, or makes that.
   * @param {string} key
   * @param {number} slice
   * @param {number} caller
   * @param {string} folds
   * @param {string} opens
   */
  #merged(key, slice, caller, folds, opens) {
    const known = this.#known.get(key);
    if (known !== undefined) return this.#add(known, slice, this.#slices.total[slice]);
    const made = this.#made.push({
      id: slice,
      parent: caller,
      total: 0,
      own: 0,
      small: 0,
      lit: 0,
      frames: new Set(),
      folds,
      opens,
    });
    this.#known.set(key, made - 1);
    return this.#add(made - 1, slice, this.#slices.total[slice]);
  }

  /** @param {number} drawn @param {number} slice @param {number} total */
  #add(drawn, slice, total) {
    const { own, folded, lit, full } = this.#slices;
    const made = this.#made[drawn];
    made.total += total;
    made.own += own[slice];
    made.small += folded[slice];
    made.lit = Math.max(made.lit, lit?.[slice] ?? 0);
    made.frames.add(full[slice]);
    return drawn;
  }

  /** @returns {DrawnSlices} */
  slices() {
    const before = this.#slices;
    const many = this.#made.map(({ folds, frames }) => (folds ? frames.size : 1));
    /** @param {(made: Made, at: number) => string} text @param {string[]} column */
    const texts = (text, column) => this.#made.map((made, at) => (many[at] > 1 ? text(made, at) : column[made.id]));
    return {
      id: this.#made.map(({ id }) => id),
      frames: many,
      parent: this.#made.map(({ parent }) => parent),
      label: this.#labels(texts(({ folds }, at) => `${folds} (${many[at]} frames)`, before.label)),
      full: texts(({ folds }, at) => `${many[at]} frames of ${folds}`, before.full),
      total: this.#made.map(({ total }) => total),
      own: this.#made.map(({ own }) => own),
      folded: this.#made.map(({ small }) => small),
      fill: this.#made.map(({ id }) => before.fill[id]),
      library: this.#made.map(({ id }) => before.library[id]),
      event: this.#made.map(({ id }) => before.event[id]),
      name: this.#made.map(({ id }) => before.name[id]),
      line: this.#made.map(({ id }) => before.line[id]),
      ranks: before.ranks && this.#made.map(({ id }, at) => (many[at] > 1 ? "" : (before.ranks?.[id] ?? ""))),
      lit: before.lit && this.#made.map(({ lit }) => lit),
    };
  }

  /** @param {string[]} labels */
  #labels(labels) {
    return labels.map((label, at) =>
      this.#made[at].small ? `other (${this.#made[at].small.toLocaleString("en")})` : label,
    );
  }
}
