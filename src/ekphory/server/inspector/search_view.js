// A question with one preset: its hits, the stages beside them, and the block for the prompt.

import { answering } from "./answering.js";
import { el, facts } from "./element.js";
import { count, counted, milliseconds, moment } from "./format.js";
import { hitList } from "./hit_list.js";
import { invite } from "./nothing_kept.js";
import { promptBlock } from "./prompt_block.js";
import { questionForm } from "./question_form.js";
import { askProject } from "./server.js";
import { waterfall } from "./waterfall.js";

export function searchView(section) {
  const answer = answering(section.querySelector(".results"));
  return questionForm("search", section.querySelector("form"), {
    clear: answer.clear,
    rest: () => invite(answer, "Ask these memories something",
      { text: "Type a question in your own words and press Enter. The key / leads to the field from anywhere." },
      { text: "An empty question lists the newest memories." },
      { text: "The address holds the question: reload, go back, or send it to somebody." }),
    ask: (given) => answer((signal) => askProject("/inspect/search", request(given), signal), found),
  });
}

// What the server is asked: numbers as numbers.
function request(given) {
  return {
    ...given,
    ...query(given),
    top_k: Number(given.top_k) || null,
    max_tokens: Number(given.max_tokens) || null,
    min_score: given.min_score === "" ? null : Number(given.min_score),
    // The control has no zone; what is typed is meant in UTC, as everything is shown.
    now: given.now && `${given.now}Z`,
  };
}

// The empty question is one as well: it asks for the newest.
export const query = (given) => ({ query: given.query.trim() || " " });

export function found(answer) {
  const hits = el("section", { class: "answer-main", "aria-label": "Answer" }, answerTabs(answer));
  const stages = el("section", { class: "answer-side", "aria-label": "How it was found" },
    el("h2", {}, "Stages"), waterfall(answer));
  return [summary(answer), el("div", { class: "answer" }, hits, stages)];
}

function answerTabs(answer) {
  if (!answer.prompt) return hitList(answer);
  const panes = {
    [`Hits (${count(answer.hits.length)})`]: hitList(answer),
    "As the model gets it": promptBlock(answer.prompt),
  };
  const buttons = Object.keys(panes).map((name) => el("button", { type: "button", class: "quiet", click: () => show(name) }, name));
  function show(chosen) {
    Object.entries(panes).forEach(([name, pane], place) => {
      pane.hidden = name !== chosen;
      buttons[place].setAttribute("aria-pressed", name === chosen);
    });
  }
  show(Object.keys(panes)[0]);
  return [el("div", { class: "switch", role: "group", "aria-label": "Shown as" }, buttons), ...Object.values(panes)];
}

// One line that sums a search up, with the stages that have a number.
function summary(answer) {
  const number = (status) => answer.stages.filter((stage) => stage.number && stage.status === status).length;
  const degraded = number("degraded");
  const parts = [
    ["hits", count(answer.hits.length)],
    ["took", milliseconds(answer.milliseconds)],
    ["preset", answer.preset],
    ["stages", `${number("ran") + degraded} ran, ${number("skipped")} skipped`],
    degraded && ["degraded", counted(degraded, "stage", "stages")],
    ["ages told at", moment(answer.now)],
  ];
  return el("div", { class: "summary" }, facts(parts.filter(Boolean)));
}
