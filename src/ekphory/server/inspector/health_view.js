// The state of the whole store.

import { answering } from "./answering.js";
import { el, facts, notice } from "./element.js";
import { bytes, count, words } from "./format.js";
import { ask } from "./server.js";

const MARKS = { fine: "✓", note: "i", repairable: "!" };
const MEANINGS = { fine: "fine", note: "worth knowing", repairable: "can be mended" };

export function healthView(section) {
  const results = section.querySelector(".results");
  const answer = answering(results);
  const open = () => answer((signal) => ask("/inspect/health", { signal }), show);
  section.querySelector("#health-again").addEventListener("click", open);
  return { open, clear: answer.clear };
}

function show(health) {
  const verdict = health.healthy
    ? notice("All is well.", "good")
    : notice("Something can be mended: run `ekphory doctor --repair`.", "warn");
  return [
    verdict,
    el("ul", { class: "findings", "aria-label": "Findings" }, health.findings.map(finding)),
    el("h2", {}, "In numbers"),
    el("div", { class: "panel" }, facts(Object.entries(health.numbers).map(([name, value]) => [words(name), number(name, value)]))),
  ];
}

function finding(found) {
  return el("li", { class: `finding finding-${found.state}` },
    el("span", { class: "mark", role: "img", "aria-label": MEANINGS[found.state] }, MARKS[found.state]),
    el("span", {}, el("strong", {}, found.subject), " ", found.sentence));
}

function number(name, value) {
  if (value === null) return "none";
  return name === "bytes" ? bytes(value) : count(value);
}
