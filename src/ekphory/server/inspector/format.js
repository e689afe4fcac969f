// Numbers and moments for people; moments in UTC, as the store keeps them.

const WHOLE = new Intl.NumberFormat("en");
const DAY = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  dateStyle: "medium",
  timeStyle: "short",
});
const BAR_FORMS = {
  hour: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short", year: "numeric" },
  week: { day: "numeric", month: "short", year: "numeric" },
  month: { month: "short", year: "numeric" },
  quarter: { month: "short", year: "numeric" },
};

export const count = (number) => WHOLE.format(number);
export const day = (moment) => DAY.format(new Date(moment));
export const moment = (given) => `${MOMENT.format(new Date(given))} UTC`;

// A probability that is small is not none.
export function percent(share) {
  return share > 0 && share < 0.005 ? "<1%" : `${Math.round(share * 100)}%`;
}

export function counted(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function milliseconds(value) {
  if (value === 0) return "0 ms";
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (value >= 10) return `${value.toFixed(1)} ms`;
  return `${value.toFixed(value >= 0.1 ? 2 : 3)} ms`;
}

// A score as it is: three digits that count.
export function score(value) {
  return Number.isInteger(value) ? count(value) : Number(value.toPrecision(3)).toString();
}

export function bytes(size) {
  const units = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];
  const unit = units.find(([, factor]) => size >= factor);
  return unit ? `${(size / unit[1]).toFixed(1)} ${unit[0]}` : `${size} bytes`;
}

// The name of a bar of the timeline, by the unit of time that it stands for.
export function span(begins, unit) {
  const form = BAR_FORMS[unit] ?? { year: "numeric" };
  const named = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...form });
  const text = named.format(new Date(begins));
  const prefix = { week: "week of ", quarter: "quarter from ", decade: "decade from ", century: "century from " };
  return `${prefix[unit] ?? ""}${text}`;
}

// What a stage tells of itself: names without underscores, numbers without noise.
export function told(value) {
  if (value === null) return "none";
  if (typeof value === "number") return score(value);
  if (Array.isArray(value)) return value.length ? value.map(told).join(", ") : "none";
  if (typeof value === "object") {
    return Object.entries(value).map(([name, each]) => `${words(name)} ${told(each)}`).join("; ");
  }
  return String(value);
}

export const words = (name) => name.replaceAll("_", " ");
