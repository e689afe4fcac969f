// Charts over time, drawn by uPlot in the colours of the page.

import { el } from "./element.js";

const HEIGHT = 200;
const COLOURS = ["--accent", "--semantic", "--procedural", "--good", "--bad", "--warn", "--unknown", "--edge", "--soft"];
const SINGLE = 10;
const MINUTE = 60;
const DAY = 86_400;
const MONTH = 28 * DAY;
const TIME = { hour: "2-digit", minute: "2-digit" };
const drawn = new Map();

// A figure with a line for each series, `{name: values}`; `told` says it in words. Without a `range`
// of seconds it reaches from the first time to the last. Where it is stepped, a value holds until
// the next.
export function chart({ title, times, series, told, unit = "", range = null, isStepped = false }) {
  const place = el("div", { class: "chart-place", role: "img", "aria-label": told });
  const figure = el("figure", { class: "chart panel" }, el("figcaption", {}, title), place);
  drawn.set(place, () => draw(place, { times, series, unit, range, isStepped }));
  observer.observe(place);
  return figure;
}

function draw(place, { times, series, unit, range, isStepped }) {
  const names = Object.keys(series);
  const soft = colour(place, "--soft");
  const { linear, stepped } = globalThis.uPlot.paths;
  const paths = isStepped ? stepped({ align: 1 }) : linear();
  const axis = { stroke: soft, grid: { stroke: colour(place, "--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const options = {
    width: Math.max(place.clientWidth, 100),
    height: HEIGHT,
    // Moments in UTC, as everywhere.
    tzDate: (seconds) => globalThis.uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { y: false, points: { size: 6 } },
    // Before a moment is pointed at, the legend tells the last.
    hooks: { ready: [(picture) => picture.setLegend({ idx: times.length - 1 })] },
    scales: { x: range ? { range } : {}, y: { range: (_, least, most) => [0, Math.max(most * 1.05, 1)] } },
    axes: [{ ...axis, size: 32, values: (_, seconds, __, ___, step) => seconds.map((each) => clock(each, step)) }, { ...axis, size: 72, values: (_, values) => values.map((value) => `${value.toLocaleString("en")}${unit}`) }],
    series: [
      { value: (_, seconds) => (seconds === null ? "–" : new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")) },
      ...names.map((name, number) => ({
        label: name,
        stroke: colour(place, COLOURS[number % COLOURS.length]),
        width: 2,
        paths,
        points: { show: times.length < SINGLE },
        value: (_, value) => (value === null ? "–" : `${value.toLocaleString("en", { maximumFractionDigits: 1 })}${unit}`),
      })),
    ],
  };
  place.replaceChildren();
  new globalThis.uPlot(options, [times, ...names.map((name) => series[name])], place);
}

// A moment as an axis tells it, where the next one is `step` seconds later.
function clock(seconds, step) {
  const form = step >= MONTH ? { month: "short", year: "numeric" } : step >= DAY ? { day: "numeric", month: "short" } : step >= MINUTE ? TIME : { ...TIME, second: "2-digit" };
  return new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...form }).format(new Date(seconds * 1000));
}

// A custom property holds both schemes; a colour that is used holds the one that is meant.
function colour(place, name) {
  const probe = el("span", {});
  probe.style.color = `var(${name})`;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// Drawn when it is seen, when its width changes, and when the scheme does.
const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => redraw(target)));

function redraw(place) {
  if (!place.isConnected) {
    drawn.delete(place);
    observer.unobserve(place);
  } else if (place.clientWidth) drawn.get(place)();
}

const redrawAll = () => [...drawn.keys()].forEach(redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
new MutationObserver(redrawAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
