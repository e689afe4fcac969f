// Searches that were recorded, whoever made them, and any of them opened.

import { go, link } from "./address.js";
import { answering } from "./answering.js";
import { afterInput, el, emptyState, notice } from "./element.js";
import { counted, milliseconds, moment } from "./format.js";
import { pager } from "./pager.js";
import { fill, standard } from "./question_form.js";
import { askFirst } from "./question_dialog.js";
import { found } from "./search_view.js";
import { askProject } from "./server.js";

const SIZE = 25;
const SURFACES = { server: "the server", mcp: "MCP", python: "Python", "command line": "the command line" };

export function recordedView(section) {
  const form = section.querySelector("form");
  const answer = answering(section.querySelector(".results"));
  let page = 0;

  const filters = () => Object.fromEntries(["text", "surface", "preset"].map((name) => [name, form.elements[name].value]));
  const chosen = () => Object.fromEntries(Object.entries(filters()).filter(([name, value]) => value !== standard(form.elements[name])));

  function open(given) {
    const { number, ...rest } = given;
    form.hidden = number !== undefined;
    page = 0;
    if (number === undefined) {
      fill(form, rest);
      load();
    } else {
      answer((signal) => askProject("/inspect/searches/get", { number: Number(number) }, signal), opened);
    }
  }

  function load() {
    answer((signal) => askProject("/inspect/searches", { ...filters(), page_num: page, page_size: SIZE }, signal), list);
  }

  function list({ kept, total, searches }) {
    if (!searches.length) return none(kept, Object.keys(chosen()).length > 0);
    const pages = pager({ page, size: SIZE, total }, (next) => {
      page = next;
      load();
    });
    return [
      kept ? null : notice("Recording is off; these were recorded before.", "calm"),
      pages,
      el("ol", { class: "records", "aria-label": "Recorded searches" }, searches.map(row)),
    ].filter(Boolean);
  }

  async function clear() {
    const isSure = await askFirst({
      title: "Remove these records?",
      text: "All recorded searches of this project that the filters let through are removed for good. No memory is.",
      yes: "Remove",
    });
    if (isSure === null) return;
    await answer((signal) => askProject("/inspect/searches/clear", filters(), signal), ({ cleared }) =>
      notice(`${counted(cleared, "record was", "records were")} removed.`, "calm"));
  }

  afterInput(section, form, () => go("recorded", chosen()));
  form.addEventListener("submit", (event) => event.preventDefault());
  section.querySelector("#recorded-clear").addEventListener("click", clear);
  return { open, clear: answer.clear };
}

function none(kept, isFiltered) {
  if (isFiltered) return emptyState("No recorded search is like this", { text: "Loosen a filter." });
  if (kept) return emptyState("Nothing was searched here yet", { text: "Searches of the server, MCP, Python and the command line appear here; those of this page do not." });
  return emptyState("No searches are recorded",
    { text: "To record the newest 1,000, start the server, and whatever else searches, with:", code: "EKPHORY_RECORD_SEARCHES=1000" },
    { text: "Records stay in the file searches.sqlite3 of the store. They hold the questions, and of each hit its id and scores." },
    { text: "A record goes when a memory that it shows is purged." });
}

function row(record) {
  return el("li", {}, el("a", { class: "record", href: link("recorded", { number: record.id }) },
    el("span", { class: "record-query" }, record.query),
    el("span", { class: "record-facts" },
      el("time", { datetime: record.at }, moment(record.at)),
      el("span", {}, SURFACES[record.surface]),
      el("span", {}, record.preset),
      el("span", {}, counted(record.hits, "hit", "hits")),
      el("span", {}, milliseconds(record.milliseconds)))));
}

// As it was, but for what was forgotten since.
function opened(answer) {
  const { recorded, settings, gone } = answer;
  const again = {
    query: recorded.query,
    preset: recorded.preset,
    top_k: String(Math.min(settings.k, 100)),
    time: settings.time === "boost" ? null : settings.time,
    min_score: settings.min_score,
    filter: settings.filter || null,
  };
  return [
    el("div", { class: "toolbar" },
      el("a", { href: link("recorded") }, "← All recorded searches"),
      el("a", { href: link("search", again) }, "Search again now")),
    el("h2", { class: "question" }, recorded.query),
    el("p", { class: "lead" }, `Asked through ${SURFACES[recorded.surface]} on ${moment(recorded.at)}.`),
    gone > 0 && notice(`${counted(gone, "hit was", "hits were")} forgotten since, and cannot be shown.`, "warn"),
    settings.agent_mode && notice("The retrieval agent made this search; its steps are not recorded.", "calm"),
    found(answer),
  ].flat().filter(Boolean);
}
