// Which project is looked at: one of those that the key reaches, or another by its name.

import { el } from "./element.js";

const ANOTHER = "another";
const select = document.getElementById("project");
const dialog = document.getElementById("project-dialog");
const form = document.getElementById("project-form");

let projects = [];
let chosen = {};

// The fields that name it; none, and the server takes the key's own.
export const currentProject = () => chosen;

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
    chosen = { org_id: given.get("org_id").trim(), project_id: given.get("project_id").trim() };
    if (place() < 0) projects.push(chosen);
    dialog.close();
    onChange();
  });
}

// Takes the projects that there are, and keeps the chosen one where it is among them.
export function offerProjects(listed) {
  projects = listed;
  if (place() < 0) chosen = projects[0] ?? {};
  show();
}

function show() {
  const options = projects.map((each, number) =>
    el("option", { value: number }, `${each.org_id} / ${each.project_id}`),
  );
  if (!projects.length) options.push(el("option", { value: "" }, "the key's own"));
  options.push(el("option", { value: ANOTHER }, "Another …"));
  select.replaceChildren(...options);
  select.value = projects.length ? String(place()) : "";
}

function place() {
  return projects.findIndex(
    (each) => each.org_id === chosen.org_id && each.project_id === chosen.project_id,
  );
}
