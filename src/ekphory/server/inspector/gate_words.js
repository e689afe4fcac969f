// What the gate decided, whether the reranker reads the best candidates again, in plain words.

import { score, words } from "./format.js";

const GATE = [
  [/^hard-gate-high: spread=(\S+) > (\S+) \(vector confident\)/,
    (spread, high) => `the best vectors stand out clearly, so nothing was read again (spread ${spread}, from ${high} on)`],
  [/^hard-gate-low: spread=(\S+) < (\S+) \(tied set\)/,
    (spread, low) => `the best vectors are too much alike to tell apart, so nothing was read again (spread ${spread}, below ${low})`],
  [/^hard-gate-pass: spread=(\S+) in \[(\S+), (\S+)\]/,
    (spread, low, high) => `the best are read again (spread ${spread}, between ${low} and ${high})`],
  [/^soft-gate: spread=(\S+) → vectorMultiplier=(\S+)/,
    (spread, weight) => `the best are read again, and the order before weighs ${weight} times as much (spread ${spread})`],
  [/^auto-gate-skip: (\w+)=(\S+) outside \[(\S+), (\S+)\]/,
    (name, value, low, high) => `reading again would hardly change the order (${words(name)} ${value}, not between ${low} and ${high})`],
  [/^auto-gate-pass: (\w+)=(\S+) within \[(\S+), (\S+)\]/,
    (name, value, low, high) => `the best are read again (${words(name)} ${value}, between ${low} and ${high})`],
  [/^gate-off/, () => "the best are always read again"],
];

// What a stage says, with the sentence for what the gate decided.
export function plainly(said) {
  for (const [pattern, tell] of GATE) {
    const found = said.match(pattern);
    if (found) return tell(...found.slice(1).map(rounded)) + said.slice(found[0].length);
  }
  return said;
}

const rounded = (part) => (isNaN(part) ? part : score(Number(part)));
