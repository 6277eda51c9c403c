// Numbers by chance that are the same in every run with the same seed, so that a failure can be seen again: next() below
// 1, below(n) whole ones, of(list) one of a list.
export function random(seed) {
  let state = (seed * 2654435761 + 12345) >>> 0;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { next, below, of: (list) => list[below(list.length)] };
}
