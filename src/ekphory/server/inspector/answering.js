// What all views share: results are fetched, the latest request counts, failures are told.

import { notice } from "./element.js";

const announcement = document.getElementById("announcement");

// Gives a function that shows what `fetching` gives; it overtakes an earlier one under way. Its
// `clear` empties the place, also of what is still on its way.
export function answering(place) {
  let running = null;
  const answer = async (fetching, showing) => {
    running?.abort();
    const own = new AbortController();
    running = own;
    place.setAttribute("aria-busy", "true");
    try {
      const found = await fetching(own.signal);
      if (running === own) present(place, showing(found));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (running === own) place.replaceChildren(notice(problem.message));
      if (problem.status === undefined) throw problem;
    } finally {
      if (running === own) place.removeAttribute("aria-busy");
    }
  };
  answer.clear = () => {
    running?.abort();
    running = null;
    place.removeAttribute("aria-busy");
    place.replaceChildren();
  };
  return answer;
}

// To those who listen only the sum of it is told, not all that is shown.
function present(place, shown) {
  place.replaceChildren(...[shown].flat());
  announcement.textContent = place.querySelector(".summary, .pager-place, .notice")?.innerText ?? "";
}
