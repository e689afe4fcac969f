// One question with two presets.

import { answering } from "./answering.js";
import { el, facts } from "./element.js";
import { milliseconds } from "./format.js";
import { hitComparison, inCommon } from "./hit_comparison.js";
import { invite } from "./nothing_kept.js";
import { questionForm } from "./question_form.js";
import { query } from "./search_view.js";
import { askProject } from "./server.js";
import { stagePairs } from "./stage_pairs.js";

export function compareView(section) {
  const answer = answering(section.querySelector(".results"));

  function ask(given) {
    const asked = { top_k: Number(given.top_k) || null, now: new Date().toISOString(), ...query(given) };
    const withPreset = (preset, signal) => askProject("/inspect/search", { ...asked, preset }, signal);
    answer(async (signal) => [
      // One after the other, so that neither takes time from the other.
      await withPreset(given.preset_a, signal),
      await withPreset(given.preset_b, signal),
    ], show);
  }

  const rest = () => invite(answer, "Compare what two presets find",
    { text: "Type a question, choose two presets and press Enter." },
    { text: "An empty question lists the newest memories, with every preset the same." });
  return questionForm("compare", section.querySelector("form"), { ask, rest, clear: answer.clear });
}

function show([first, second]) {
  return [
    el("div", { class: "summary" }, facts([
      [`A: ${first.preset}`, milliseconds(first.milliseconds)],
      [`B: ${second.preset}`, milliseconds(second.milliseconds)],
      ["in both", `${inCommon(first, second)} of ${Math.max(first.hits.length, second.hits.length)} hits`],
    ])),
    el("h2", {}, "Hits"),
    hitComparison(first, second),
    el("h2", {}, "Stages"),
    stagePairs(first, second),
  ];
}
