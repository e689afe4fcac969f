// The presets that a search can name, offered by every form.

import { el } from "./element.js";

export function offerPresets(presets) {
  const standard = presets.find((each) => each.default).name;
  for (const select of document.querySelectorAll("select.presets")) {
    const { all, choice } = select.dataset;
    const usual = all ? "" : presets.some((each) => each.name === choice) ? choice : standard;
    const options = presets.map((each) => el("option", { value: each.name, title: each.summary, selected: each.name === usual },
      each.default && !all ? `${each.name} (default)` : each.name));
    if (all) options.unshift(el("option", { value: "", selected: true }, all));
    const before = select.value;
    select.replaceChildren(...options);
    select.value = presets.some((each) => each.name === before) ? before : usual;
  }
}
