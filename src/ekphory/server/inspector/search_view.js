// A question with one preset: its stages, its hits.

import { answering } from "./answering.js";
import { el } from "./element.js";
import { hitList } from "./hit_list.js";
import { askProject } from "./server.js";
import { summary, waterfall } from "./waterfall.js";

export function searchView(section) {
  const form = section.querySelector("form");
  const results = section.querySelector(".results");
  const answer = answering(results);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    const asked = {
      ...given,
      top_k: Number(given.top_k) || null,
      min_score: given.min_score === "" ? null : Number(given.min_score),
      // The control has no zone; what is typed is meant in UTC, as everything is shown.
      now: given.now && `${given.now}Z`,
    };
    answer((signal) => askProject("/inspect/search", { ...asked, ...query(given) }, signal), show);
  });
  return { open: () => {}, clear: answer.clear };
}

// The empty question is one as well: it asks for the newest.
export const query = (given) => ({ query: given.query.trim() || " " });

function show(answer) {
  return [
    summary(answer),
    el("h2", {}, "Stages"),
    waterfall(answer),
    el("h2", {}, "Hits"),
    hitList(answer),
  ];
}
