// One memory: read, changed, forgotten, and taken back where that can be done.

import { el, notice, unfolding } from "./element.js";
import { moment } from "./format.js";
import { allFacts, origin } from "./memory_facts.js";
import { askFirst } from "./question_dialog.js";
import { askProject } from "./server.js";

const TYPES = ["episodic", "semantic", "procedural", "unknown"];
const FORGETTING = "It is hidden at once, with its earlier versions. This can be undone as long as you see this page.";
const PURGING = "Wipe it from the disk too, which cannot be undone. That rewrites the data files, which takes seconds for each gigabyte, and removes the recorded searches that show it.";
// What can be done with a memory; another verb of the product finds its place here.
const ACTIONS = { Edit: edit, Supersede: supersede, Forget: forget };

export function memoryCard(memory) {
  const card = el("li", { class: "memory", "data-id": memory.id });
  show(card, memory);
  return card;
}

function show(card, memory, ...above) {
  const actions = Object.entries(ACTIONS).map(([name, act]) =>
    el("button", { type: "button", class: "plain", click: () => act(card, memory) }, name));
  card.replaceChildren(...above,
    origin(memory),
    el("p", { class: "memory-text" }, memory.text),
    el("div", { class: "memory-foot" },
      el("details", { class: "more" }, el("summary", {}, "All fields"), el("div", { class: "account" }, allFacts(memory))),
      memory.supersedes && versions(memory),
      el("div", { class: "actions", role: "group", "aria-label": "What can be done" }, actions)));
}

function versions(memory) {
  return unfolding("Earlier versions", async () => {
    const { memories } = await askProject("/inspect/history", { id: memory.id });
    return el("ol", { class: "versions" }, memories.slice(1).map((each) =>
      el("li", {}, el("p", { class: "memory-text" }, each.text), el("p", { class: "hint" }, `written ${moment(each.created_at)}`))));
  });
}

function edit(card, memory) {
  const text = el("textarea", { name: "text", rows: 4, required: true, "aria-label": "Text" });
  const type = el("select", { name: "type" }, TYPES.map((name) => el("option", { value: name }, name)));
  const importance = el("input", { name: "importance", type: "number", min: 0, max: 1, step: "any" });
  text.value = memory.text;
  type.value = memory.type;
  importance.value = memory.importance;
  const form = el("form", { class: "editing" }, text,
    el("div", { class: "toolbar" },
      el("label", { class: "field field-inline" }, el("span", { class: "field-name" }, "Type"), type),
      el("label", { class: "field field-inline" }, el("span", { class: "field-name" }, "Importance"), importance),
      el("button", { type: "submit", class: "primary" }, "Save"),
      el("button", { type: "button", class: "quiet", click: () => show(card, memory) }, "Cancel")),
    el("p", { class: "hint" }, "The memory keeps its id, and what it says now stays as an earlier version."));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = { text: text.value, type: type.value, importance: Number(importance.value) };
    change(card, memory, differing(given, memory));
  });
  card.replaceChildren(form);
  text.focus();
}

const differing = (given, memory) => Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== memory[name]));

function change(card, memory, changes) {
  if (!Object.keys(changes).length) return show(card, memory);
  return attempt(card, async () => {
    const changed = await askProject("/inspect/update", { id: memory.id, ...changes });
    const back = Object.fromEntries(Object.keys(changes).map((name) => [name, memory[name]]));
    show(card, changed, done("Changed.", () => change(card, changed, back)));
  });
}

async function forget(card, memory) {
  const purge = await askFirst({ title: "Forget this memory?", text: FORGETTING, yes: "Forget", choice: PURGING });
  if (purge === null) return;
  await attempt(card, async () => {
    const { undo } = await askProject("/inspect/forget", { id: memory.id, purge });
    const takeBack = () => attempt(card, async () => {
      await askProject("/inspect/take_back", { undo });
      show(card, memory, done("It is there again."));
    });
    card.replaceChildren(undo ? done("Forgotten.", takeBack) : done("Forgotten, and wiped from the disk."));
  });
}

// The memory that holds in its place is named by its id, which every card shows among its fields;
// those on the page are offered.
function supersede(card, memory) {
  const offered = el("datalist", { id: `offered-for-${memory.id}` }, others(card));
  const by = el("input", { name: "by", type: "text", required: true, autocomplete: "off", spellcheck: "false", list: offered.id });
  const form = el("form", { class: "editing" },
    el("label", { class: "field" }, el("span", { class: "field-name" }, "Id of the memory that holds in its place"), by, offered),
    el("div", { class: "toolbar" },
      el("button", { type: "submit", class: "primary" }, "Supersede"),
      el("button", { type: "button", class: "quiet", click: () => show(card, memory) }, "Cancel")),
    el("p", { class: "hint" }, "Both are kept; searches put this one below the other. It can be taken back here and under Changes."));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(card, async () => {
      const made = await askProject("/inspect/supersede", { old: memory.id, by: by.value.trim() });
      const takeBack = () => attempt(card, async () => {
        await askProject("/inspect/unsupersede", { revision: made.id });
        show(card, memory, done("It holds again."));
      });
      show(card, memory, done("Superseded.", takeBack));
    });
  });
  card.replaceChildren(el("p", { class: "memory-text" }, memory.text), form);
  by.focus();
}

function others(card) {
  return [...card.parentElement.querySelectorAll(".memory > .memory-text")]
    .filter((text) => text.parentElement !== card)
    .map((text) => el("option", { value: text.parentElement.dataset.id, label: text.textContent }));
}

async function attempt(card, act) {
  try {
    await act();
  } catch (problem) {
    card.querySelector(".notice")?.remove();
    card.prepend(notice(problem.message));
    if (problem.status === undefined) throw problem;
  }
}

function done(message, undo = null) {
  const told = notice(message, "calm");
  if (undo) told.append(" ", el("button", { type: "button", class: "plain", click: undo }, "Undo"));
  return told;
}
