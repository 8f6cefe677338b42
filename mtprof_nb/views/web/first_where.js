// Binary search.

/**
 * The first number from `low` on that passes a test which all after it pass too; `high` where none does.
 * @param {number} low
 * @param {number} high
 * @param {(at: number) => boolean} passes
 */
export function firstWhere(low, high, passes) {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (passes(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}
