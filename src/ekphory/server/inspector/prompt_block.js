// The block for the prompt, letter by letter as a model gets it.

import { el } from "./element.js";
import { count, counted } from "./format.js";

const REASONS = {
  injection: "tries to steer a model",
  overlap: "said already",
  unlikely: "too unlikely",
  budget: "did not fit",
};

export function promptBlock(prompt) {
  const copied = el("output", { class: "hint" });
  const copy = async () => {
    // Browsers have a clipboard only where the page comes from this machine or by HTTPS.
    try {
      await navigator.clipboard.writeText(prompt.text);
      copied.value = "Copied.";
    } catch {
      copied.value = "The browser does not allow it here: select the text and copy it.";
    }
  };
  const left = Object.entries(REASONS).map(([reason, meaning]) => {
    const places = prompt.left_out.filter((each) => each.reason === reason).map((each) => each.place);
    return places.length && `${places.length > 1 ? "hits" : "hit"} ${places.join(", ")}: ${meaning}`;
  }).filter(Boolean);
  return el("div", { class: "prompt" },
    el("div", { class: "toolbar" },
      el("span", {}, `About ${counted(prompt.used_tokens, "token", "tokens")} of ${count(prompt.max_tokens)}`),
      el("button", { type: "button", class: "quiet", click: copy }, "Copy"), copied),
    left.length > 0 && el("p", { class: "hint" }, `Left out: ${left.join("; ")}.`),
    el("pre", { class: "prompt-text", tabindex: "0", "aria-label": "Block for the prompt" }, prompt.text));
}
