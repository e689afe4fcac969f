// Questions to the server: always this one, with the key where there is one.

import { askForKey, currentKey } from "./access_key.js";
import { currentProject } from "./project_choice.js";

const API = "api/v2";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Asks about the chosen project; a list of fields without a value is left out.
export function askProject(path, fields = {}, signal = undefined) {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const body = { ...currentProject(), ...Object.fromEntries(given) };
  return ask(path, { method: "POST", body: JSON.stringify(body), signal });
}

export async function ask(path, settings = {}) {
  for (;;) {
    const key = currentKey();
    const answered = await send(path, settings, key);
    if (answered.ok) return answered.json();
    const message = await reason(answered);
    if (answered.status !== 401) throw new Refused(answered.status, message);
    // Another question may have asked for the key meanwhile.
    const isGiven = currentKey() !== key || (await askForKey(key ? message : undefined));
    if (!isGiven) throw new Refused(401, message);
  }
}

async function send(path, settings, key) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  try {
    return await fetch(`${API}${path}`, { ...settings, headers, cache: "no-store" });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(0, "The server cannot be reached.");
  }
}

async function reason(answered) {
  const wait = answered.headers.get("Retry-After");
  const again = wait ? ` Try again in ${wait} s.` : "";
  try {
    const { detail } = await answered.json();
    return (typeof detail === "string" ? detail : detail.message) + (answered.status === 429 ? "" : again);
  } catch {
    return `The server answered ${answered.status}.${again}`;
  }
}
