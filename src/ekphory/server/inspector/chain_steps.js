// The events of an agent session as steps: a title for the list, an account for the one looked at.

import { el, facts } from "./element.js";
import { counted, milliseconds, percent } from "./format.js";
import { probability } from "./hit_list.js";
import { origin } from "./memory_facts.js";

const TELLERS = {
  session_started: {
    label: "start",
    title: () => "The question is taken up",
    account: (data) => facts([
      ["question", data.query],
      ["decided by", data.provider],
      ["searches at most", String(data.most_calls)],
      ["time at most", `${data.timeout_seconds} s`],
    ]),
  },
  route_chosen: {
    label: "route",
    title: (data) => data.reason_note,
    account: (data) => facts([
      ["way", data.route === "coq" ? "hop by hop" : "one lookup"],
      ["because", data.reason_code],
      ["threads", String(data.branches)],
    ]),
  },
  memmachine_search_completed: {
    label: "search",
    title: (data) => data.query,
    account: (data, memories) => [
      facts([
        ["searched", data.query],
        ["came to", data.status === "success" ? counted(data.memory_ids.length, "memory", "memories") : `${data.status}: ${data.summary}`],
        ["took", milliseconds(data.milliseconds)],
      ]),
      evidence("The best of them", data.memory_ids.slice(0, 5), memories),
    ],
  },
  hop_resolved: {
    label: "resolved",
    title: (data) => (data.answer ? `${data.query} → ${data.answer}` : data.query),
    account: (data, memories) => [
      facts([
        ["looked for", data.query],
        ["found", data.answer || "evidence, no name"],
        ["confidence", probability(data.confidence)],
        ["because", data.reason],
      ]),
      evidence("Stated by", data.memory_ids, memories),
    ],
  },
  sub_agent_started: {
    label: "thread",
    title: (data) => `Thread ${data.branch}: ${data.query}`,
    account: (data) => facts([["thread", String(data.branch)], ["question", data.query]]),
  },
  sub_agent_completed: {
    label: "thread",
    title: (data) => `Thread ${data.branch} ended: ${data.status}`,
    account: (data) => facts([
      ["thread", String(data.branch)],
      ["ended", data.status],
      ["memories", String(data.memories)],
      ["went back", counted(data.retries, "time", "times")],
    ]),
  },
  model_answered: {
    label: "model",
    title: (data) => `The model gave message ${data.turn}`,
    account: (data) => facts([
      ["asked", counted(data.attempts, "time", "times")],
      ["tokens", `${data.input_tokens} in, ${data.output_tokens} out`],
      ["took", milliseconds(data.milliseconds)],
    ]),
  },
  model_retried: {
    label: "again",
    title: (data) => data.problem,
    account: (data) => facts([["attempt", String(data.attempt)], ["waits", `${data.wait_seconds} s`], ["problem", data.problem]]),
  },
  fallback_applied: {
    label: "fell back",
    title: (data) => data.reason,
    account: (data) => facts([["reason", data.reason], ["problem", data.problem]]),
  },
  orchestration_completed: {
    label: "end",
    title: (data) => data.response || "The session ended",
    account: (data) => facts([
      ["evidence", data.sufficient ? "held to be enough" : "not held to be enough"],
      ["confidence", data.confidence === null ? "nobody said" : percent(data.confidence)],
      ["memories given", String(data.memories)],
      ["reranked", data.rerank_applied ? "yes" : "no"],
    ]),
  },
};

export function steps(events) {
  return events.filter((event) => event.event_type in TELLERS).map((event) => ({
    kind: event.event_type,
    label: TELLERS[event.event_type].label,
    title: TELLERS[event.event_type].title(event.data),
    milliseconds: event.milliseconds,
    data: event.data,
  }));
}

export function account(step, memories) {
  return TELLERS[step.kind].account(step.data, memories);
}

// The hops in a row, so far as the step looked at has come.
export function chain(all, current) {
  const hops = all.map((step, place) => ({ step, place })).filter(({ step }) => step.kind === "hop_resolved");
  if (!hops.length) return null;
  return el("ol", { class: "chain", "aria-label": "Hops" }, hops.map(({ step, place }, number) =>
    el("li", { class: place > current ? "hop hop-ahead" : place === current ? "hop hop-current" : "hop" },
      el("span", { class: "hop-number" }, `Hop ${number + 1}`),
      el("span", { class: "hop-query" }, step.data.query),
      el("strong", { class: "hop-answer" }, place > current ? "…" : step.data.answer || "evidence found"),
      place > current ? null : probability(step.data.confidence))));
}

function evidence(title, ids, memories) {
  if (!ids.length) return null;
  return el("div", {}, el("h4", {}, title), el("ul", { class: "evidence" }, ids.map((id) => {
    const memory = memories.get(id);
    if (!memory) return el("li", {}, el("code", {}, id));
    return el("li", { "data-id": id }, el("p", { class: "memory-text" }, memory.text), origin(memory));
  })));
}
