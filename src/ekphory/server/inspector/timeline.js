// When memories happened, as bars of an SVG picture stacked by type; a bar can be chosen.

import { el, svg } from "./element.js";
import { count, counted, span } from "./format.js";

const TYPES = ["episodic", "semantic", "procedural", "unknown"];
const WIDTH = 1000;
const HEIGHT = 150;
const NAMES = 5;

// `choose` is called with the beginning and the end of a bar.
export function timeline(outline, choose) {
  if (!outline.bars.length) return null;
  const present = TYPES.filter((type) => outline.bars.some((bar) => bar.counts[type]));
  const totals = outline.bars.map((bar) => Object.values(bar.counts).reduce((sum, each) => sum + each, 0));
  const most = Math.max(...totals);
  const legend = el("ul", { class: "legend" }, present.map((type) =>
    el("li", { class: `type type-${type}` }, type)));
  return el("figure", { class: "timeline panel" },
    el("figcaption", {}, `Memories by ${outline.unit}, at most ${count(most)} in one`,
      el("span", { class: "hint" }, "Choose a bar to see what happened then.")),
    picture(outline, { totals, most, choose }),
    names(outline),
    legend);
}

function picture({ bars, unit }, { totals, most, choose }) {
  const step = WIDTH / bars.length;
  const made = bars.map((bar, place) => group(bar, { place, total: totals[place], most, step, unit, choose }));
  const filled = made.filter((_, place) => totals[place] > 0);
  filled.forEach((bar, place) => bar.addEventListener("keydown", (event) => move(event, filled, place)));
  filled[0].setAttribute("tabindex", "0");
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "timeline-picture", role: "group",
    "aria-label": `Timeline: ${counted(bars.length, "bar", "bars")}, at most ${count(most)} memories in one` },
  made,
  svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }));
}

function group(bar, { place, total, most, step, unit, choose }) {
  const thick = Math.min(step * 0.78, 46);
  const left = place * step + (step - thick) / 2;
  let top = HEIGHT;
  const parts = TYPES.filter((type) => bar.counts[type]).map((type) => {
    const high = Math.max((bar.counts[type] / most) * HEIGHT, 1.5);
    top -= high;
    return svg("rect", { class: `fill-${type}`, x: left, y: top, width: thick, height: high });
  });
  const made = Object.entries(bar.counts).map(([type, number]) => `${number} ${type}`).join(", ");
  const name = `${span(bar.begins, unit)}: ${counted(total, "memory", "memories")}${made ? ` (${made})` : ""}`;
  const area = svg("rect", { class: "bar-area", x: place * step, y: 0, width: step, height: HEIGHT });
  const choosing = () => choose(bar.begins, bar.ends);
  return svg("g", total ? { class: "timeline-bar", role: "button", tabindex: "-1", "aria-label": name, click: choosing,
    keydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), choosing()) } : {},
  svg("title", {}, name), area, parts);
}

// One bar is reached by Tab, the others from there by the arrows.
function move(event, bars, place) {
  const targets = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: bars.length - 1 };
  const next = bars[targets[event.key]];
  if (!next) return;
  event.preventDefault();
  bars.forEach((bar) => bar.setAttribute("tabindex", bar === next ? "0" : "-1"));
  next.focus();
}

function names({ bars, unit }) {
  const shown = Math.min(bars.length, NAMES);
  const places = Array.from({ length: shown }, (_, number) => Math.round((number * (bars.length - 1)) / Math.max(shown - 1, 1)));
  return el("div", { class: "timeline-names", "aria-hidden": "true" }, places.map((place) =>
    el("span", { "--at": (place + 0.5) / bars.length }, span(bars[place].begins, unit).replace(/^.* (of|from) /, ""))));
}
