// What is kept of a memory beside its text.

import { el, facts } from "./element.js";
import { moment } from "./format.js";

// The line under a memory: when, where, of which kind.
export function origin(memory) {
  const predicted = (field) => (memory.predicted.includes(field) ? " (predicted)" : "");
  return el("p", { class: "origin" },
    el("time", { datetime: memory.at, title: moment(memory.at) }, memory.age),
    el("span", { class: `type type-${memory.type}`, title: `type${predicted("type")}` }, memory.type),
    el("span", {}, memory.pool),
    memory.producer && el("span", {}, memory.producer),
    el("span", { title: `importance${predicted("importance")}` }, `importance ${Number(memory.importance.toFixed(2))}`));
}

export function allFacts(memory) {
  const named = [
    ["id", el("code", {}, memory.id)],
    ["happened", moment(memory.at)],
    ["written", moment(memory.created_at)],
    ["expires", memory.expires_at && moment(memory.expires_at)],
    ["for", memory.produced_for],
    ["role", memory.role],
    ["agent", memory.agent],
    ["user", memory.user],
    ["session", memory.session],
    ["place in it", memory.sequence],
    ["source", memory.source],
    ["path", memory.path],
    ["heading", memory.heading],
    ["lines", memory.lines],
    ["replaces", memory.supersedes],
    ["predicted", memory.predicted.join(", ")],
    ...Object.entries(memory.metadata).map(([key, value]) => [`m.${key}`, value]),
  ];
  return facts(named.filter(([, value]) => value !== null && value !== "").map(([name, value]) =>
    [name, typeof value === "number" ? String(value) : value]));
}
