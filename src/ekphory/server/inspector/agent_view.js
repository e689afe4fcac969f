// The retrieval agent on one question, stepped through.

import { answering } from "./answering.js";
import { account, chain, steps } from "./chain_steps.js";
import { el, facts } from "./element.js";
import { count, milliseconds, percent } from "./format.js";
import { hitList } from "./hit_list.js";
import { invite } from "./nothing_kept.js";
import { questionForm } from "./question_form.js";
import { askProject } from "./server.js";

export function agentView(section) {
  const answer = answering(section.querySelector(".results"));

  function ask(given) {
    // Without a question there is nothing to follow.
    if (!given.query.trim()) return rest();
    answer((signal) => askProject("/inspect/search", { ...given, agent_mode: true }, signal), show);
  }

  const rest = () => invite(answer, "Let the agent follow a question",
    { text: "Type a question whose answer takes several memories, each naming the next, and press Enter." },
    { text: "One that needs a single memory is looked up once, as under Search." });
  return questionForm("agent", section.querySelector("form"), { ask, rest, clear: answer.clear });
}

function show(answer) {
  return [summary(answer.agent), stepper(answer), el("h2", {}, "Hits"), hitList(answer)];
}

function summary(agent) {
  const parts = [
    ["way", agent.selected_agent],
    ["decided by", agent.provider],
    ["searches", count(agent.searches)],
    ["took", milliseconds(agent.milliseconds)],
    ["confidence", agent.confidence === null ? "nobody said" : percent(agent.confidence)],
  ];
  if (agent.fallback_trigger_reason) parts.push(["fell back", agent.fallback_trigger_reason]);
  return el("div", { class: "summary" }, facts(parts));
}

function stepper(answer) {
  const all = steps(answer.agent.events);
  const memories = new Map([...answer.others, ...answer.hits.map((hit) => hit.memory)].map((each) => [each.id, each]));
  const picture = el("div", { class: "chain-place" });
  const shown = el("div", { class: "step-account panel", "aria-live": "polite" });
  const position = el("output", { class: "step-position" });
  const range = el("input", { type: "range", min: 1, max: all.length, "aria-label": "Step", input: () => go(Number(range.value) - 1) });
  const back = el("button", { type: "button", class: "quiet", click: () => go(current - 1) }, "← Back");
  const next = el("button", { type: "button", class: "primary", click: () => go(current + 1) }, "Next →");
  const buttons = all.map((step, place) => el("button", { type: "button", class: "step", click: () => go(place) },
    el("span", { class: `step-label step-${step.kind}` }, step.label),
    el("span", { class: "step-title" }, step.title),
    el("span", { class: "step-time" }, milliseconds(step.milliseconds))));
  let current = 0;

  function go(place) {
    current = Math.min(Math.max(place, 0), all.length - 1);
    range.value = current + 1;
    position.value = `Step ${current + 1} of ${all.length}`;
    back.disabled = current === 0;
    next.disabled = current === all.length - 1;
    buttons.forEach((button, each) => {
      button.classList.toggle("step-ahead", each > current);
      if (each === current) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    const step = all[current];
    picture.replaceChildren(...[chain(all, current)].filter(Boolean));
    shown.replaceChildren(el("h3", {}, `${step.label}: ${step.title}`), ...[account(step, memories)].flat().filter(Boolean));
  }

  go(0);
  return el("div", { class: "stepper" },
    el("div", { class: "toolbar", role: "group", "aria-label": "Steps" }, back, range, next, position),
    picture,
    el("div", { class: "steps-and-account" },
      el("ol", { class: "steps", "aria-label": "All steps" }, buttons.map((button) => el("li", {}, button))),
      shown));
}
