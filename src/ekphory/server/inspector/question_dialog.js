// A question before something is done, with one choice.

const dialog = document.getElementById("question-dialog");
const part = (name) => document.getElementById(`question-${name}`);

// What was asked about is out of sight then.
addEventListener("hashchange", () => dialog.close());

// Resolves to null where it is cancelled, else to whether the choice was ticked.
export function askFirst({ title, text, yes, choice = "" }) {
  part("title").textContent = title;
  part("text").textContent = text;
  part("yes").textContent = yes;
  part("choice").hidden = !choice;
  part("choice-text").textContent = choice;
  const form = part("form");
  form.reset();
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(dialog.returnValue === "yes" ? form.elements.choice.checked : null);
    dialog.addEventListener("close", answer, { once: true });
  });
}
