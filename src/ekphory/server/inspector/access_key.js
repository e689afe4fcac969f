// The key: asked for when the server wants one, kept for this tab alone.

const STORED = "ekphory.key";
const dialog = document.getElementById("key-dialog");
const form = document.getElementById("key-form");
const button = document.getElementById("key-button");
const why = document.getElementById("key-why");
const WANTED = why.textContent;

let waiting = null;
const listeners = [];

export const currentKey = () => sessionStorage.getItem(STORED);

// Called with nothing whenever another key, or none, is used from now on.
export const onKeyChange = (listener) => listeners.push(listener);

// Asks for a key; resolves to whether one was given. Questions that wait share one dialog.
export function askForKey(message = WANTED) {
  if (waiting === null) {
    why.textContent = message;
    form.reset();
    waiting = new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "given"), { once: true });
    }).finally(() => {
      waiting = null;
      showState();
    });
    dialog.returnValue = "";
    dialog.showModal();
  }
  return waiting;
}

function keep(key) {
  if (key) sessionStorage.setItem(STORED, key);
  else sessionStorage.removeItem(STORED);
  showState();
}

function showState() {
  button.textContent = currentKey() ? "Key in use" : "Key";
  document.getElementById("key-forget").hidden = !currentKey();
}

async function change() {
  const before = currentKey();
  await askForKey("With another key you may see other projects.");
  if (currentKey() !== before) listeners.forEach((listener) => listener());
}

export function setUpKey() {
  showState();
  button.addEventListener("click", change);
  document.getElementById("key-cancel").addEventListener("click", () => dialog.close(""));
  document.getElementById("key-forget").addEventListener("click", () => {
    keep(null);
    dialog.close("");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep(form.elements.key.value.trim());
    form.reset();
    dialog.close("given");
  });
}
