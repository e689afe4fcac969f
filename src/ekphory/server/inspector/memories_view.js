// All memories of the project, by pool, type, importance and time.

import { answering } from "./answering.js";
import { el, notice } from "./element.js";
import { count } from "./format.js";
import { allFacts, origin } from "./memory_facts.js";
import { pager } from "./pager.js";
import { askProject } from "./server.js";
import { timeline } from "./timeline.js";

const SIZE = 20;

export function memoriesView(section) {
  const form = section.querySelector("form");
  const results = section.querySelector(".results");
  const answer = answering(results);
  const { pool, type, since, until, least_importance: least, least_shown: leastShown } = form.elements;
  let page = 0;

  function load() {
    const { order, ...given } = Object.fromEntries(new FormData(form));
    const selection = { ...given, least_importance: Number(given.least_importance) || null };
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
    load();
  }

  function show({ outline, memories }) {
    offer(pool, "all pools", outline.pools);
    offer(type, "all types", outline.types);
    const picture = timeline(outline, (begins, ends) => {
      [since.value, until.value] = [begins.slice(0, 10), ends.slice(0, 10)];
      // Hours of one day: the day is the least that the controls can name.
      if (since.value === until.value) until.value = dayAfter(since.value);
      reload();
      since.focus();
    });
    if (!memories.length) return [picture, notice("No memory is like this.", "calm")].filter(Boolean);
    const pages = pager({ page, size: SIZE, total: outline.total }, (next) => {
      page = next;
      load();
    });
    return [picture, pages, el("ol", { class: "memories", "aria-label": "Memories" }, memories.map(card))];
  }

  form.addEventListener("input", reload);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The controls have their old values until the event is over.
  form.addEventListener("reset", () => setTimeout(reload));
  return {
    open: reload,
    clear: () => {
      answer.clear();
      for (const select of [pool, type]) select.replaceChildren();
    },
  };
}

function dayAfter(day) {
  const next = new Date(`${day}T00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString().slice(0, 10);
}

function offer(select, all, counts) {
  const chosen = select.value;
  const names = Object.keys(counts);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  const options = names.sort().map((name) => el("option", { value: name }, `${name} (${count(counts[name] ?? 0)})`));
  select.replaceChildren(el("option", { value: "" }, all), ...options);
  select.value = chosen;
}

function card(memory) {
  return el("li", { class: "memory", "data-id": memory.id },
    el("p", { class: "memory-text" }, memory.text),
    origin(memory),
    el("details", { class: "more" }, el("summary", {}, "All fields"), el("div", { class: "account" }, allFacts(memory))));
}
