// What was said before and after a memory in its session.

import { el, unfolding } from "./element.js";
import { moment } from "./format.js";
import { askProject } from "./server.js";

const BESIDE = 3;

export function dialogue(memory) {
  return unfolding("The dialogue around it", async () => {
    const { memories } = await askProject("/inspect/around", { id: memory.id, before: BESIDE, after: BESIDE });
    return el("ol", { class: "dialogue", "aria-label": "Dialogue" }, memories.map((each) => turn(each, each.id === memory.id)));
  });
}

function turn(memory, isFound) {
  return el("li", { class: isFound ? "turn turn-found" : "turn", "aria-current": isFound },
    el("span", { class: "turn-speaker", title: moment(memory.at) }, memory.producer || memory.role || "–"),
    el("p", { class: "memory-text" }, memory.text));
}
