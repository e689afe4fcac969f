// Which project is looked at: one of those that the key reaches, or another by its name.

import { currentKey } from "./access_key.js";
import { el } from "./element.js";

const ANOTHER = "another";
const select = document.getElementById("project");
const dialog = document.getElementById("project-dialog");
const form = document.getElementById("project-form");

let projects = [];
let chosen = {};

// The fields that name it; none, and the server takes the key's own.
export const currentProject = () => chosen;

// Whether there is any to choose from.
export const isAnyListed = () => projects.length > 0;

export function setUpProjects(onChange) {
  select.addEventListener("change", () => {
    if (select.value === ANOTHER) {
      form.reset();
      dialog.showModal();
      return;
    }
    chosen = projects[Number(select.value)] ?? {};
    onChange();
  });
  document.getElementById("project-cancel").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new FormData(form);
    choose({ org_id: given.get("org_id").trim(), project_id: given.get("project_id").trim() });
    dialog.close();
    onChange();
  });
}

// Takes the project that an address names; whether that is another one than before.
export function chooseProject(named) {
  if (!named.org_id || !named.project_id || isSame(named, chosen)) return false;
  choose(named);
  show();
  return true;
}

// Takes the projects that there are, and keeps the chosen one where it is among them, or where the
// address names it.
export function offerProjects(listed, named) {
  projects = listed;
  if (place() < 0) choose(named.org_id && named.project_id ? named : (projects[0] ?? {}));
  show();
}

function choose(project) {
  chosen = project;
  if (chosen.org_id && place() < 0) projects.push(chosen);
}

function show() {
  const options = projects.map((each, number) =>
    el("option", { value: number }, `${each.org_id} / ${each.project_id}`),
  );
  if (!projects.length) options.push(el("option", { value: "" }, currentKey() ? "the key's own" : "none yet"));
  options.push(el("option", { value: ANOTHER }, "Another …"));
  select.replaceChildren(...options);
  select.value = projects.length ? String(place()) : "";
}

const isSame = (one, other) => one.org_id === other.org_id && one.project_id === other.project_id;
const place = () => projects.findIndex((each) => isSame(each, chosen));
