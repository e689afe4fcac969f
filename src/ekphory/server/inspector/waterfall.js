// The stages of one search as a waterfall: when each ran, how long, and what it let through.

import { el, facts } from "./element.js";
import { count, milliseconds, told, words } from "./format.js";
import { plainly } from "./gate_words.js";

export const STATUS_WORDS = {
  ran: "ran",
  skipped: "skipped",
  degraded: "degraded",
  absent: "not in this preset",
};

export function waterfall(answer) {
  const whole = Math.max(answer.milliseconds, 0.001);
  const stages = numbered(answer.stages.filter((stage) => stage.status !== "absent"));
  const most = Math.max(1, ...stages.map(({ stage }) => stage.candidates_out));
  return el("div", { class: "waterfall" }, head(whole), el("ol", { class: "stages", "aria-label": "Stages" },
    stages.map(({ stage, number }) => row(stage, { whole, most, number }))));
}

// The stages of a preset, numbered from 1 in their order; what opens the scope comes before them.
export function numbered(stages) {
  let before = 0;
  return stages.map((stage) => ({ stage, number: stage.number ? (before += 1) : "" }));
}

export function flow(stage) {
  if (stage.status === "absent" || !(stage.candidates_in || stage.candidates_out)) return "–";
  if (stage.candidates_in === stage.candidates_out) return count(stage.candidates_out);
  return `${count(stage.candidates_in)} → ${count(stage.candidates_out)}`;
}

function head(whole) {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    el("span", { class: "tick", "--at": share }, milliseconds(whole * share)),
  );
  return el("div", { class: "stage-grid waterfall-head", "aria-hidden": "true" },
    el("span", {}, "Stage"),
    el("span", { class: "to-right" }, "Candidates"),
    el("span", { class: "ticks" }, marks),
    el("span", { class: "to-right" }, "Time"));
}

function row(stage, { whole, most, number }) {
  const line = el("div", { class: "stage-grid" },
    el("span", { class: "stage-name" }, el("span", { class: "stage-number" }, number), stage.name),
    candidates(stage, most),
    track(stage, whole),
    el("span", { class: "stage-time to-right" }, milliseconds(stage.milliseconds)));
  const attributes = { class: `stage stage-${stage.status}`, "data-stage": stage.name, "data-status": stage.status };
  return el("li", attributes, el("details", {}, el("summary", {}, line), account(stage)));
}

// A funnel down the rows: each bar is as wide as what the stage let through, by its square root.
function candidates(stage, most) {
  const share = Math.sqrt(stage.candidates_out / most);
  return el("span", { class: "candidates", "aria-label": `candidates ${flow(stage)}` },
    el("span", { class: "funnel", "--share": share }), el("span", { class: "candidate-count" }, flow(stage)));
}

function track(stage, whole) {
  if (stage.status === "skipped") {
    return el("span", { class: "track track-words" }, `${STATUS_WORDS.skipped}: ${plainly(stage.reason)}`);
  }
  const bar = el("span", {
    class: "bar",
    "--begins": stage.begins / whole,
    "--lasts": stage.milliseconds / whole,
  });
  const problem = stage.status === "degraded" && el("span", { class: "degraded-reason" }, `degraded: ${stage.reason}`);
  return el("span", { class: "track" }, bar, problem);
}

function account(stage) {
  const list = (title, entries) => entries.length > 0 && el("div", { class: "account-part" },
    el("h4", {}, title), facts(entries.map(([name, value]) => [words(name), typeof value === "string" ? plainly(value) : told(value)])));
  return el("div", { class: "account" },
    stage.purpose && el("p", {}, stage.purpose),
    list("In this search", Object.entries(stage.detail)),
    list("Settings", Object.entries(stage.settings).filter(([name]) => name !== "number" && name !== "name")));
}
