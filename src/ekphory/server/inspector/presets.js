// The presets that a search can name, offered by every form.

import { el } from "./element.js";

export function offerPresets(presets) {
  for (const select of document.querySelectorAll("select.presets")) {
    const before = select.value || select.dataset.choice;
    const options = presets.map((each) =>
      el("option", { value: each.name, title: each.summary }, each.default ? `${each.name} (default)` : each.name),
    );
    select.replaceChildren(...options);
    const standard = presets.find((each) => each.default);
    const known = presets.some((each) => each.name === before);
    select.value = known ? before : standard.name;
  }
}
