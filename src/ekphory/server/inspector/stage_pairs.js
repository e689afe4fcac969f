// Two searches, stage beside stage, their times on one scale.

import { el } from "./element.js";
import { milliseconds } from "./format.js";
import { plainly } from "./gate_words.js";
import { STATUS_WORDS, flow, numbered } from "./waterfall.js";

export function stagePairs(first, second) {
  const longest = Math.max(...[...first.stages, ...second.stages].map((stage) => stage.milliseconds), 0.001);
  const rows = numbered(paired(first.stages, second.stages)).map(({ stage: row, number }) =>
    el("tr", {},
      el("th", { scope: "row" }, el("span", { class: "stage-number" }, number), row.name),
      row.pair.map((stage, side) => cell(stage, longest, "AB"[side]))));
  return el("table", { class: "pairs" },
    el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, "Stage"),
      el("th", { scope: "col" }, `A: ${first.preset}`),
      el("th", { scope: "col" }, `B: ${second.preset}`))),
    el("tbody", {}, rows));
}

function paired(first, second) {
  const rows = new Map();
  [first, second].forEach((stages, side) => stages.forEach((stage, place) => {
    const key = `${stage.number} ${stage.name}`;
    const row = rows.get(key) ?? { name: stage.name, number: stage.number, place, pair: [null, null] };
    row.pair[side] = stage;
    row.place = place;
    rows.set(key, row);
  }));
  const told = [...rows.values()].filter(({ pair }) => pair.some((stage) => stage && stage.status !== "absent"));
  return told.sort((one, other) => one.number - other.number || one.place - other.place);
}

function cell(stage, longest, side) {
  if (stage === null || stage.status === "absent") {
    return el("td", { class: "pair pair-quiet", "data-side": side }, STATUS_WORDS.absent);
  }
  if (stage.status === "skipped") {
    return el("td", { class: "pair pair-quiet", "data-side": side }, `skipped: ${plainly(stage.reason)}`);
  }
  const numbers = el("span", { class: "pair-numbers" },
    el("span", {}, milliseconds(stage.milliseconds)), el("span", { class: "pair-flow" }, flow(stage)));
  return el("td", { class: `pair pair-${stage.status}`, "data-side": side },
    el("span", { class: "pair-track" }, el("span", { class: "bar", "--begins": 0, "--lasts": stage.milliseconds / longest })),
    numbers,
    stage.status === "degraded" && el("span", { class: "degraded-reason" }, `degraded: ${stage.reason}`));
}
