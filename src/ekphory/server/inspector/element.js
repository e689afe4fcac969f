// Elements, made by calls. What is given as a child only ever becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(name, attributes = {}, ...children) {
  return furnished(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return furnished(document.createElementNS(SVG, name), attributes, children);
}

// A list of names with what they stand for.
export function facts(entries) {
  const pairs = entries.map(([name, value]) =>
    el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, value)),
  );
  return el("dl", { class: "facts" }, pairs);
}

export function notice(message, kind = "bad") {
  const role = kind === "bad" ? "alert" : "status";
  return el("p", { class: `notice notice-${kind}`, role }, message);
}

// Where nothing is to be shown: what is so, and what to do next; `code` is what to type.
export function emptyState(title, ...steps) {
  return el("div", { class: "empty panel", role: "status" },
    el("h2", {}, title),
    el("ul", {}, steps.filter(Boolean).map(({ text, code }) => el("li", {}, text, code && el("code", { class: "command" }, code)))));
}

// What folds out, and is asked for when it first does.
export function unfolding(summary, load) {
  const place = el("div", { class: "unfolded" }, el("p", { class: "hint" }, "…"));
  const details = el("details", { class: "more" }, el("summary", {}, summary), place);
  details.addEventListener("toggle", async () => {
    try {
      place.replaceChildren(...[await load()].flat());
    } catch (problem) {
      place.replaceChildren(notice(problem.message));
      if (problem.status === undefined) throw problem;
    }
  }, { once: true });
  return details;
}

function furnished(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name.startsWith("--")) made.style.setProperty(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  const given = children.flat(2);
  made.append(...given.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const TYPING_PAUSE = 200;

// Act after a form was changed, once the typing rests, unless its view was left meanwhile.
export function afterInput(view, form, act) {
  let waiting = null;
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    const pause = event.target.name === "text" ? TYPING_PAUSE : 0;
    waiting = setTimeout(() => view.hidden || act(), pause);
  });
}
