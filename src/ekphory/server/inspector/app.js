// Starts the page: the controls at its head, the views, and which of them is shown.

import { onKeyChange, setUpKey } from "./access_key.js";
import { forgetLatest, go, note, read } from "./address.js";
import { agentView } from "./agent_view.js";
import { changesView } from "./changes_view.js";
import { compareView } from "./compare_view.js";
import { notice } from "./element.js";
import { memoriesView } from "./memories_view.js";
import { offerPresets } from "./presets.js";
import { chooseProject, offerProjects, setUpProjects } from "./project_choice.js";
import { recordedView } from "./recorded_view.js";
import { searchView } from "./search_view.js";
import { ask } from "./server.js";
import { storeView } from "./store_view.js";
import { setUpTheme } from "./theme.js";

const TITLES = {
  search: "Search",
  compare: "Compare",
  agent: "Agent",
  memories: "Memories",
  changes: "Changes",
  recorded: "Recorded",
  store: "Store",
};
const makers = {
  search: searchView,
  compare: compareView,
  agent: agentView,
  memories: memoriesView,
  changes: changesView,
  recorded: recordedView,
  store: storeView,
};
const views = {};
const settings = document.getElementById("settings");

function shownName() {
  const name = read().view;
  return name in TITLES ? name : "search";
}

function show() {
  const shown = shownName();
  const { given, project } = read();
  if (chooseProject(project)) clearAll();
  note(shown, given);
  document.title = `${given.query ? `${given.query} · ` : ""}${TITLES[shown]} · ekphory inspector`;
  for (const name of Object.keys(TITLES)) {
    document.getElementById(name).hidden = name !== shown;
    const link = document.querySelector(`.tabs a[data-view="${name}"]`);
    if (name === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  views[shown].open(given);
}

function clearAll() {
  forgetLatest();
  for (const view of Object.values(views)) view.clear();
}

// Another project, or another key: nothing that was shown may stay.
function startAnew() {
  clearAll();
  if (!go(shownName(), {})) show();
}

async function load() {
  try {
    const [presets, projects] = await Promise.all([
      ask("/inspect/presets"),
      ask("/projects/list", { method: "POST", body: "{}" }),
    ]);
    offerPresets(presets);
    offerProjects(projects, read().project);
  } catch (problem) {
    offerProjects([], {});
    document.querySelector("main").prepend(notice(problem.message));
  }
}

async function loadAgain() {
  document.querySelector("main > .notice")?.remove();
  await load();
  startAnew();
}

function focusField(event) {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable], dialog");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector(".view:not([hidden]) input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

for (const link of document.querySelectorAll(".tabs a")) link.dataset.view = link.hash.slice(2);
setUpTheme();
setUpKey();
setUpProjects(startAnew);
onKeyChange(loadAgain);
await load();
for (const [name, make] of Object.entries(makers)) views[name] = make(document.getElementById(name));
addEventListener("hashchange", show);
addEventListener("keydown", focusField);
addEventListener("click", (event) => {
  if (!settings.contains(event.target)) settings.open = false;
});
settings.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  settings.open = false;
  settings.firstElementChild.focus();
});
show();
document.documentElement.dataset.ready = "true";
