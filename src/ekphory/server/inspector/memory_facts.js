// What is kept of a memory beside its text.

import { link } from "./address.js";
import { el, facts } from "./element.js";
import { day, moment } from "./format.js";

// The line beside a memory: who said it, when, where, of which kind.
export function origin(memory) {
  const predicted = (field) => (memory.predicted.includes(field) ? " (predicted)" : "");
  return el("p", { class: "origin" },
    memory.producer && el("strong", { class: "speaker" }, memory.producer),
    el("time", { datetime: memory.at, title: moment(memory.at) }, `${day(memory.at)}, ${memory.age}`),
    place(memory),
    memory.heading && el("span", {}, memory.heading),
    el("span", { class: `type type-${memory.type}`, title: `type${predicted("type")}` }, memory.type),
    el("span", {}, memory.pool),
    el("span", { title: `importance${predicted("importance")}` }, `importance ${Number(memory.importance.toFixed(2))}`));
}

// A passage of a file; its session is the file, under a longer name.
export const isOfDocument = (memory) => Boolean(memory.session && memory.path && memory.lines);

// The file that it stands in, or else the dialogue.
function place(memory) {
  const file = memory.lines ? `${memory.path} (${memory.lines})` : memory.path;
  const whole = { href: link("memories", { session: memory.session }) };
  if (isOfDocument(memory)) return el("a", { ...whole, title: "All memories of this document" }, file);
  return [
    memory.path && el("span", {}, file),
    memory.session && el("a", { ...whole, title: "All memories of this session" }, dialogueName(memory)),
  ];
}

// The title that an import of chats gives a dialogue, else its session.
function dialogueName({ metadata, session, path }) {
  return typeof metadata.title === "string" && !path ? `“${metadata.title}”` : `session ${session}`;
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
