// The hits of two searches in one table: where each stands in either, and how far it moved.

import { el } from "./element.js";
import { percent } from "./format.js";
import { noHits } from "./hit_list.js";
import { origin } from "./memory_facts.js";

export function hitComparison(first, second) {
  const rows = joined(first.hits, second.hits);
  if (!rows.length) return noHits(first);
  return el("table", { class: "moves" },
    el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, el("abbr", { title: `A: ${first.preset}` }, "A")),
      el("th", { scope: "col" }, el("abbr", { title: `B: ${second.preset}` }, "B")),
      el("th", { scope: "col" }, "Moved"),
      el("th", { scope: "col" }, "Memory"))),
    el("tbody", {}, rows.map(row)));
}

export function inCommon(first, second) {
  return joined(first.hits, second.hits).filter(({ places }) => places.every((place) => place !== null)).length;
}

function joined(first, second) {
  const rows = new Map();
  [first, second].forEach((hits, side) => hits.forEach((hit, place) => {
    const row = rows.get(hit.memory.id) ?? { hit, places: [null, null], scores: [null, null] };
    row.places[side] = place + 1;
    row.scores[side] = hit.score;
    rows.set(hit.memory.id, row);
  }));
  const best = ({ places }) => Math.min(...places.map((place) => place ?? Infinity));
  return [...rows.values()].sort((one, other) => best(one) - best(other));
}

function row({ hit, places, scores }) {
  const [kind, text] = move(...places);
  return el("tr", { class: `move move-${kind}`, "data-id": hit.memory.id },
    places.map((place, side) => el("td", { class: "standing" }, place === null ? el("span", { class: "none" }, "–") : [
      el("span", { class: "rank" }, place), el("span", { class: "standing-score" }, percent(scores[side])),
    ])),
    el("td", { class: "moved" }, text),
    el("td", {}, el("p", { class: "memory-text" }, hit.text), origin(hit.memory)));
}

function move(before, after) {
  if (before === null) return ["new", "only in B"];
  if (after === null) return ["gone", "only in A"];
  if (before === after) return ["same", "same place"];
  const steps = Math.abs(before - after);
  return before > after ? ["up", `▲ up ${steps}`] : ["down", `▼ down ${steps}`];
}
