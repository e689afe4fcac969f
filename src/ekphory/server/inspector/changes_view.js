// Which memories supersede which: what waits for somebody to look, and what acts.

import { answering } from "./answering.js";
import { el, emptyState, notice } from "./element.js";
import { counted, moment, percent } from "./format.js";
import { origin } from "./memory_facts.js";
import { optionsOfPlace } from "./nothing_kept.js";
import { askProject } from "./server.js";

const MOST = 200;
const MEANS = {
  replaces: "The newer one replaces the older one",
  corrects: "The newer one corrects the older one",
  ends: "The newer one ends the older one",
  restates: "Both say the same",
  adds: "The newer one adds to the older one",
  plans: "The newer one is a plan",
  excepts: "The newer one is an exception for a while",
};

export function changesView(section) {
  const answer = answering(section.querySelector(".results"));
  const load = () => answer((signal) => askProject("/inspect/revisions", { limit: MOST }, signal), show);
  return { open: load, clear: answer.clear };
}

function show({ revisions }) {
  if (!revisions.length) {
    return emptyState("No memory is said to supersede another",
      { text: "New memories are compared with earlier ones after they are written. To compare those that are there:", code: `ekphory conflicts --scan${optionsOfPlace()}` },
      { text: "Under Memories, Supersede says by hand which memory holds in the place of another." });
  }
  const waiting = revisions.filter((each) => each.state === "conflict");
  const acting = revisions.filter((each) => each.state === "active");
  return [
    part("To look at", waiting, "Not sure enough to act: none is marked or hidden. Where it is only not likely enough, searches put the newer one first all the same."),
    part("Decided", acting, "Searches put the older one below the newer one, and say so."),
  ].flat();
}

function part(title, revisions, lead) {
  if (!revisions.length) return [];
  return [
    el("h2", {}, `${title} (${revisions.length})`),
    el("p", { class: "hint" }, lead),
    el("ol", { class: "memories", "aria-label": title }, revisions.map(card)),
  ];
}

function card(revision) {
  const made = el("li", { class: "memory change", "data-id": revision.id });
  const meaning = MEANS[revision.kind], unsure = revision.state === "conflict";
  const told = unsure ? `Perhaps ${meaning[0].toLowerCase()}${meaning.slice(1)}` : meaning;
  const actions = unsure
    ? [button("The newer one holds", () => decide(made, revision)), button("Both hold", () => undo(made, revision, "Set aside: both hold."))]
    : [button("Undo", () => undo(made, revision, "Taken back: both hold."))];
  made.append(
    el("p", { class: "change-meaning" }, el("strong", {}, told),
      ` · ${percent(revision.probability)} sure, decided by ${revision.decided_by} on ${moment(revision.decided_at)}`),
    side("Older", revision.older),
    side("Newer", revision.newer),
    el("div", { class: "memory-foot" }, el("div", { class: "actions", role: "group", "aria-label": "What can be done" }, actions)));
  return made;
}

function side(name, memory) {
  return el("div", { class: "change-side" }, el("p", { class: "hint" }, name), origin(memory), el("p", { class: "memory-text" }, memory.text));
}

const button = (name, act) => el("button", { type: "button", class: "plain", click: act }, name);

function decide(made, revision) {
  const { older, newer, kind } = revision;
  return attempt(made, () => askProject("/inspect/supersede", { old: older.id, by: newer.id, kind }), "Decided: the newer one holds.");
}

function undo(made, revision, told) {
  return attempt(made, () => askProject("/inspect/unsupersede", { revision: revision.id }), told);
}

async function attempt(made, act, told) {
  made.querySelector(".notice")?.remove();
  try {
    await act();
    made.querySelector(".memory-foot").replaceChildren(notice(told, "calm"));
  } catch (problem) {
    made.prepend(notice(problem.message));
    if (problem.status === undefined) throw problem;
  }
}
