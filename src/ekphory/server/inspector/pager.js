// From page to page.

import { el } from "./element.js";
import { count } from "./format.js";

export function pager({ page, size, total }, go) {
  const first = page * size;
  const last = Math.min(first + size, total);
  return el("nav", { class: "toolbar pager", "aria-label": "Pages" },
    el("button", { type: "button", class: "quiet", disabled: page === 0, click: () => go(page - 1) }, "← Previous"),
    el("span", { class: "pager-place" }, `${count(first + 1)}–${count(last)} of ${count(total)}`),
    el("button", { type: "button", class: "quiet", disabled: last >= total, click: () => go(page + 1) }, "Next →"));
}
