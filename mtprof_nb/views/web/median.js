/** The median of some numbers, 0 of none. @param {number[]} numbers */
export function median(numbers) {
  const ordered = [...numbers].sort((one, other) => one - other);
  const middle = ordered.length >> 1;
  if (!ordered.length) return 0;
  return ordered.length % 2 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}
