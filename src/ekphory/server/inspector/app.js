// Starts the page: the controls at its head, the views, and which of them is shown.

import { onKeyChange, setUpKey } from "./access_key.js";
import { agentView } from "./agent_view.js";
import { compareView } from "./compare_view.js";
import { notice } from "./element.js";
import { healthView } from "./health_view.js";
import { memoriesView } from "./memories_view.js";
import { offerPresets } from "./presets.js";
import { offerProjects, setUpProjects } from "./project_choice.js";
import { searchView } from "./search_view.js";
import { ask } from "./server.js";
import { setUpTheme } from "./theme.js";

const TITLES = {
  search: "Search",
  compare: "Compare",
  agent: "Agent",
  memories: "Memories",
  health: "Health",
};
const makers = {
  search: searchView,
  compare: compareView,
  agent: agentView,
  memories: memoriesView,
  health: healthView,
};
const views = {};

function shownName() {
  const name = location.hash.replace("#/", "");
  return name in TITLES ? name : "search";
}

function show() {
  const shown = shownName();
  document.title = `${TITLES[shown]} · ekphory inspector`;
  for (const name of Object.keys(TITLES)) {
    document.getElementById(name).hidden = name !== shown;
    const link = document.querySelector(`.tabs a[href="#/${name}"]`);
    if (name === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  views[shown].open();
}

// Another project, or another key: nothing that was shown may stay.
function startAnew() {
  for (const view of Object.values(views)) view.clear();
  views[shownName()].open();
}

async function load() {
  try {
    const [presets, projects] = await Promise.all([
      ask("/inspect/presets"),
      ask("/projects/list", { method: "POST", body: "{}" }),
    ]);
    offerPresets(presets);
    offerProjects(projects);
  } catch (problem) {
    offerProjects([]);
    document.querySelector("main").prepend(notice(problem.message));
  }
}

async function loadAgain() {
  document.querySelector("main > .notice")?.remove();
  await load();
  startAnew();
}

setUpTheme();
setUpKey();
setUpProjects(startAnew);
onKeyChange(loadAgain);
await load();
for (const [name, make] of Object.entries(makers)) views[name] = make(document.getElementById(name));
addEventListener("hashchange", show);
show();
document.documentElement.dataset.ready = "true";
