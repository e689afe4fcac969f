// All memories of the project, by text, facets, importance and time.

import { note } from "./address.js";
import { answering } from "./answering.js";
import { afterInput, el, emptyState } from "./element.js";
import { count } from "./format.js";
import { memoryCard } from "./memory_card.js";
import { nothingKept } from "./nothing_kept.js";
import { pager } from "./pager.js";
import { fill, standard } from "./question_form.js";
import { askProject } from "./server.js";
import { timeline } from "./timeline.js";

const SIZE = 20;
// The facets, each with its plural.
const FACETS = { pool: "pools", type: "types", session: "sessions", user: "users", source: "sources", entity: "entities" };

export function memoriesView(section) {
  const form = section.querySelector("form");
  const answer = answering(section.querySelector(".results"));
  const { since, until, least_importance: least, least_shown: leastShown } = form.elements;
  let page = 0;
  // Where there is room for them, the filters are seen at once.
  form.querySelector("details").open = matchMedia("(min-width: 40rem)").matches;

  const chosen = () => Object.fromEntries([...form.elements]
    .filter((field) => field.name && field.tagName !== "OUTPUT" && field.value !== standard(field))
    .map((field) => [field.name, field.value]));

  function load() {
    const { order, ...given } = Object.fromEntries(new FormData(form));
    const selection = { ...given, text: given.text.trim(), least_importance: Number(given.least_importance) || null };
    answer(async (signal) => {
      const [outline, found] = await Promise.all([
        askProject("/inspect/outline", selection, signal),
        askProject("/inspect/memories", { ...selection, order, page_num: page, page_size: SIZE }, signal),
      ]);
      return { outline, memories: found.memories };
    }, show);
  }

  function reload() {
    page = 0;
    leastShown.value = least.value;
    note("memories", chosen());
    load();
  }

  function show({ outline, memories }) {
    for (const [name, plural] of Object.entries(FACETS)) offer(form.elements[name], plural, outline[plural]);
    const picture = timeline(outline, (begins, ends) => {
      [since.value, until.value] = [begins.slice(0, 10), ends.slice(0, 10)];
      // Hours of one day: the day is the least that the controls can name.
      if (since.value === until.value) until.value = dayAfter(since.value);
      reload();
      since.focus();
    });
    if (!memories.length) {
      const nothing = Object.keys(chosen()).length
        ? emptyState("No memory is like this", { text: "Loosen a filter, or clear them all." })
        : nothingKept();
      return [picture, nothing].filter(Boolean);
    }
    const pages = pager({ page, size: SIZE, total: outline.total }, (next) => {
      page = next;
      load();
    });
    return [picture, pages, el("ol", { class: "memories", "aria-label": "Memories" }, memories.map(memoryCard))];
  }

  afterInput(section, form, reload);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    fill(form, {});
    reload();
  });
  return {
    open: (given) => {
      fill(form, given);
      reload();
    },
    clear: () => {
      answer.clear();
      for (const name of Object.keys(FACETS)) form.elements[name].replaceChildren();
    },
  };
}

function dayAfter(day) {
  const next = new Date(`${day}T00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString().slice(0, 10);
}

function offer(select, plural, counts) {
  const chosen = select.value;
  const names = Object.keys(counts);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  const options = names.sort().map((each) => el("option", { value: each }, `${each} (${count(counts[each] ?? 0)})`));
  select.replaceChildren(el("option", { value: "", selected: true }, `all ${plural}`), ...options);
  select.value = chosen;
  // Where no memory has any, there is nothing to choose.
  select.closest(".field").hidden = !names.length;
}
