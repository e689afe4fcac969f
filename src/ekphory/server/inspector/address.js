// What is looked at, as the part of the address behind `#`, which never leaves the browser.

import { currentProject } from "./project_choice.js";

const PROJECT = ["org_id", "project_id"];
const latest = {};

// The view and its fields, as the address has them.
export function read() {
  const [, view, fields] = location.hash.match(/^#?\/?([^?]*)\??(.*)$/);
  const given = Object.fromEntries(new URLSearchParams(fields));
  const project = Object.fromEntries(PROJECT.filter((name) => given[name]).map((name) => [name, given[name]]));
  for (const name of PROJECT) delete given[name];
  return { view, given, project };
}

// The address of a view of the chosen project; fields without a value are left out.
export function link(view, fields = {}) {
  const told = Object.entries({ ...currentProject(), ...fields }).filter(([, value]) => value !== null && value !== undefined);
  return `#/${view}${told.length ? `?${new URLSearchParams(told)}` : ""}`;
}

// Goes to a view; where the address is that already, nothing happens and it is false.
export function go(view, fields) {
  const target = link(view, fields);
  if (target === location.hash) return false;
  location.hash = target;
  return true;
}

// Notes in the address what a view shows and of which project, without another step to go back.
export function note(view, fields) {
  history.replaceState(null, "", link(view, fields));
  latest[view] = fields;
  showLatest();
}

export function forgetLatest() {
  for (const name of Object.keys(latest)) delete latest[name];
  showLatest();
}

// The tabs lead back to what each view showed last.
function showLatest() {
  for (const tab of document.querySelectorAll(".tabs a")) tab.href = link(tab.dataset.view, latest[tab.dataset.view]);
}
