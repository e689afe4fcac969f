// The store: how much it holds, how it grew, how fast it answers, and whether it is well.

import { answering } from "./answering.js";
import { chart } from "./charts.js";
import { el, emptyState, facts, notice } from "./element.js";
import { bytes, count, counted, milliseconds, percent, words } from "./format.js";
import { nothingKept } from "./nothing_kept.js";
import { ask, Refused } from "./server.js";

const HOUR = 3600;
const MARKS = { fine: "✓", note: "i", repairable: "!", wanting: "!" };
const MEANINGS = { fine: "fine", note: "worth knowing", repairable: "can be mended", wanting: "can be mended" };

export function storeView(section) {
  const answer = answering(section.querySelector(".results"));
  const open = () => answer(async (signal) => {
    const [growth, latency, health] = await Promise.all([
      ask("/inspect/growth", { signal }),
      ask("/inspect/latency", { signal }),
      ask("/inspect/health", { signal }).catch((problem) => {
        // A key that is bound to a project sees what is of that project.
        if (problem instanceof Refused && problem.status === 403) return { refused: problem.message };
        throw problem;
      }),
    ]);
    return { growth, latency, health };
  }, show);
  section.querySelector("#store-again").addEventListener("click", open);
  return { open, clear: answer.clear };
}

function show({ growth, latency, health }) {
  return [
    health.refused ? notice(health.refused, "calm") : state(health),
    growth.total ? el("div", { class: "charts" }, grown("Memories by project", growth.projects), grown("Memories by pool", growth.pools)) : nothingKept(),
    speed(latency.minutes),
    !health.refused && findings(health),
  ].flat().filter(Boolean);
}

function state({ healthy, numbers }) {
  const verdict = healthy
    ? notice("All is well.", "good")
    : notice("Something can be mended: run `ekphory doctor --repair`.", "warn");
  const parts = [
    ["memories", count(numbers.memories)],
    ["earlier versions", count(numbers.history)],
    ["on disk", numbers.bytes === null ? "not known" : bytes(numbers.bytes)],
    ["a memory", numbers.bytes && numbers.memories ? bytes(Math.round(numbers.bytes / numbers.memories)) : null],
    ["vectors", count(numbers.vectors)],
    ["index", coverage(numbers)],
    ["upkeep", numbers.upkeep_failure ? "fails" : "succeeds"],
  ];
  return [verdict, el("div", { class: "summary" }, facts(parts.filter(([, value]) => value !== null)))];
}

function coverage({ vector_index_rows: covered, vectors }) {
  if (covered === null) return "none needed";
  return `covers ${percent(vectors ? Math.min(covered / vectors, 1) : 1)}`;
}

// Counts add up: from nothing before the first bar to all of now. What was written in a bar is
// counted when the bar is over, or now.
function grown(title, bars) {
  const names = [...new Set(bars.flatMap((bar) => Object.keys(bar.counts)))].sort();
  const seconds = (moment) => Date.parse(moment) / 1000;
  const now = Date.now() / 1000;
  const over = bars.map((bar) => seconds(bar.ends)).filter((end) => end < now);
  const times = [seconds(bars[0].begins), ...over, now];
  const series = Object.fromEntries(names.map((name) => {
    let sum = 0;
    const sums = [0, ...bars.map((bar) => (sum += bar.counts[name] ?? 0))];
    return [name, [...sums.slice(0, over.length + 1), sum]];
  }));
  const told = names.map((name) => `${name}: ${count(series[name].at(-1))}`).join("; ");
  return chart({ title, times, series, told: `${title}: ${told}`, isStepped: true });
}

function speed(minutes) {
  if (!minutes.length) {
    return emptyState("Nothing was asked in the last hour",
      { text: "Search, or add a memory over HTTP: the time that each answer takes appears here." });
  }
  const times = [...new Set(minutes.map((each) => Date.parse(each.at) / 1000))].sort((one, other) => one - other);
  const series = {};
  for (const each of minutes) {
    for (const quantile of ["p50", "p95"]) {
      const values = (series[`${each.route} ${quantile}`] ??= times.map(() => null));
      values[times.indexOf(Date.parse(each.at) / 1000)] = each[quantile];
    }
  }
  const answers = minutes.reduce((sum, each) => sum + each.answers, 0);
  const slowest = Math.max(...minutes.map((each) => each.p95));
  const told = `${counted(answers, "answer", "answers")} of this process in the last hour; in every minute 95% of them took at most ${milliseconds(slowest)}`;
  const now = Date.now() / 1000;
  return [el("h2", {}, "Latency"), chart({ title: told, times, series, told, unit: " ms", range: [now - HOUR, now] })];
}

function findings({ findings: found, numbers }) {
  return [
    el("h2", {}, "Health"),
    el("ul", { class: "findings", "aria-label": "Findings" }, found.map(finding)),
    el("details", { class: "more" }, el("summary", {}, "All numbers"),
      el("div", { class: "panel" }, facts(Object.entries(numbers).map(([name, value]) => [words(name), number(name, value)])))),
  ];
}

function finding(found) {
  return el("li", { class: `finding finding-${found.state}` },
    el("span", { class: "mark", role: "img", "aria-label": MEANINGS[found.state] }, MARKS[found.state]),
    el("span", {}, el("strong", {}, found.subject), " ", found.sentence));
}

function number(name, value) {
  if (value === null) return "none";
  return name === "bytes" ? bytes(value) : count(value);
}
