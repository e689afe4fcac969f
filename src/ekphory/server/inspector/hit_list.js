// Hits: what was found, how likely it answers, how old it is, and why it is there.

import { el, facts, notice } from "./element.js";
import { percent, score, words } from "./format.js";
import { allFacts, origin } from "./memory_facts.js";

export function hitList(answer) {
  if (!answer.hits.length) {
    const why = answer.abstained
      ? "Memories were found, but none is likely enough."
      : "This project holds nothing that could be found.";
    return notice(why, "calm");
  }
  return el("ol", { class: "hits", "aria-label": "Hits" }, answer.hits.map(hit));
}

export function probability(value) {
  return el("span", { class: "probability" },
    el("span", { class: "meter", "--share": value, "aria-hidden": "true" }),
    el("span", { class: "probability-number" }, percent(value)));
}

function hit(found, place) {
  const { memory } = found;
  return el("li", { class: "hit", "data-id": memory.id },
    el("div", { class: "hit-head" }, el("span", { class: "rank" }, place + 1), probability(found.score)),
    el("div", { class: "hit-body" },
      el("p", { class: "memory-text" }, found.text),
      origin(memory)),
    el("ul", { class: "reasons", "aria-label": "Why it is here" },
      found.reasons.map((reason) => el("li", { class: `reason reason-${reason.kind}` }, reason.sentence))),
    el("details", { class: "more" },
      el("summary", {}, "Scores and fields"),
      el("div", { class: "account" },
        el("div", { class: "account-part" }, el("h4", {}, "Scores"),
          facts(Object.entries(found.scores).map(([name, value]) => [words(name), score(value)]))),
        el("div", { class: "account-part" }, el("h4", {}, "Memory"), allFacts(memory)))));
}
