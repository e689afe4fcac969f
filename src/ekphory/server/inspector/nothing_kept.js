// What stands where nothing was asked yet: how to ask or, where nothing is kept, how to add something.

import { emptyState } from "./element.js";
import { currentProject, isAnyListed } from "./project_choice.js";
import { askProject } from "./server.js";

// Shows, by an `answering`, how to ask the memories of the project: the steps of a title.
export function invite(answer, title, ...steps) {
  return answer((signal) => askProject("/inspect/memories", { page_size: 1 }, signal),
    ({ memories }) => (memories.length ? emptyState(title, ...steps) : nothingKept()));
}

export function nothingKept() {
  const place = optionsOfPlace();
  return emptyState(isAnyListed() ? "This project holds no memories yet" : "This store holds no memories yet",
    { text: "Add one:", code: `ekphory add "Mara is allergic to hazelnuts"${place}` },
    { text: "Bring a chat export, a vault of notes or documents:", code: `ekphory import FILE${place}` },
    { text: "From a program, POST to /api/v2/memories; /docs describes it." },
    { text: "If they belong to another project, choose it at the head of the page." });
}

// The options by which a command reaches what this page shows: the server's own address is a store.
export function optionsOfPlace() {
  const { org_id: org, project_id: project } = currentProject();
  const scope = org ? ` --org ${quoted(org)} --project ${quoted(project)}` : "";
  return ` --store ${quoted(new URL(".", location.href).href)}${scope}`;
}

const quoted = (name) => (/^[\w.:/-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
