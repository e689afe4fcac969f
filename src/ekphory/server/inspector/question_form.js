// A form whose fields stand in the address: sending it changes the address, which then asks.

import { go } from "./address.js";

// `ask` is called with the fields that the form has, `rest` where nothing was asked yet.
export function questionForm(view, form, { ask, rest, clear }) {
  let shown = null;

  function open(given) {
    const key = JSON.stringify(given);
    if (key === shown) return;
    shown = key;
    fill(form, given);
    if ("query" in given) ask(read(form));
    else rest();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = changed(form);
    if (go(view, fields)) return;
    shown = null;
    open(fields);
  });
  return {
    open,
    clear: () => {
      shown = null;
      clear();
    },
  };
}

const read = (form) => Object.fromEntries(new FormData(form));

// What differs from the form's own values, and in any case the question and the presets.
function changed(form) {
  const kept = [...form.elements].filter((field) => field.name && (field.name === "query" || field.classList.contains("presets") || field.value !== standard(field)));
  return Object.fromEntries(kept.map((field) => [field.name, field.name === "query" ? field.value.trim() : field.value]));
}

export function standard(field) {
  if (field.tagName !== "SELECT") return field.defaultValue;
  return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value ?? "";
}

export function fill(form, given) {
  for (const field of form.elements) {
    if (!field.name) continue;
    const value = given[field.name] ?? standard(field);
    if (field.tagName === "SELECT" && ![...field.options].some((option) => option.value === value)) field.add(new Option(value, value));
    field.value = value;
  }
}
