// Hits: what was found, when and by whom it was said, how likely it answers, and why it is there.

import { read } from "./address.js";
import { dialogue } from "./dialogue.js";
import { el, emptyState, facts } from "./element.js";
import { percent, score, words } from "./format.js";
import { allFacts, isOfDocument, origin } from "./memory_facts.js";
import { nothingKept } from "./nothing_kept.js";

export function hitList(answer) {
  if (!answer.hits.length) return noHits(answer);
  return el("ol", { class: "hits", "aria-label": "Hits" }, answer.hits.map(hit));
}

export function noHits(answer) {
  if (answer.gone) return emptyState("What this search found was forgotten since", { text: "Search again to see what answers it now." });
  if (answer.abstained) {
    return emptyState("Memories were found, but none is likely enough",
      { text: "Lower the least probability under “More settings”, or leave it empty." });
  }
  // The first stage is given all that the project holds; that of a recorded search, what it held.
  if (!answer.recorded && answer.stages[0]?.candidates_in === 0) return nothingKept();
  const { filter, time } = answer.settings ?? read().given;
  const narrowed = filter || time === "filter";
  return emptyState("Nothing can be found here",
    narrowed && { text: "Take back, under “More settings”, what hides the rest: the filter, or the use of a time in the question." },
    { text: "See under Memories what this project holds, or choose another one at the head of the page." });
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
      origin(memory),
      el("p", { class: "memory-text" }, found.text),
      el("div", { class: "folds" },
        memory.session && !isOfDocument(memory) && dialogue(memory),
        el("details", { class: "more" },
          el("summary", {}, "Scores and fields"),
          el("div", { class: "account" },
            el("div", { class: "account-part" }, el("h4", {}, "Scores"),
              facts(Object.entries(found.scores).map(([name, value]) => [words(name), score(value)]))),
            el("div", { class: "account-part" }, el("h4", {}, "Memory"), allFacts(memory)))))),
    el("ul", { class: "reasons", "aria-label": "Why it is here" },
      found.reasons.map((reason) => el("li", { class: `reason reason-${reason.kind}` }, reason.sentence))));
}
