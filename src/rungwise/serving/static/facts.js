// Facts of a picture as people read them.

const NOT_SHOWN = new Set(["hash", "captions", "modified", "height", "folder", "file"]);
const OF_RUNGWISE = ["tags", "year", "taken", "latitude", "longitude", "width", "format", "bytes"];
const numbers = new Intl.NumberFormat();
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeZone: "UTC" });
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short", timeZone: "UTC" });

export const number = (value) => numbers.format(value);

/** A number of pictures as it is known: "1,000", or "about 1,000" where pictures drawn at random say so. */
export const counted = (rows, about) => `${about ? "about " : ""}${number(rows)}`;

/** [[name, text or list of texts], ...]: the user's columns first. */
export function factsOf(columns) {
  const names = Object.keys(columns).filter((name) => !NOT_SHOWN.has(name));
  const own = names.filter((name) => !OF_RUNGWISE.includes(name));
  const facts = [...own, ...OF_RUNGWISE.filter((name) => names.includes(name))].map((name) => factOf(name, columns));
  return facts.filter((fact) => fact && fact[1].length);
}

function factOf(name, columns) {
  const value = columns[name];
  if (name === "taken") return ["taken", date(value)];
  if (name === "year" && String(columns.taken ?? "").startsWith(String(value))) return null;
  if (name === "width") return ["size", `${value} × ${columns.height}`];
  if (name === "bytes") return ["file size", size(value)];
  if (name === "latitude" || name === "longitude") return [name, value.toFixed(4)];
  if (Array.isArray(value)) return [name, value];
  if (typeof value === "boolean") return [name, value ? "yes" : "no"];
  // Years and numbers of articles are no quantities: they are not grouped.
  return [name, String(value)];
}

/** A day, or a day and an hour, as people write them; the hour is that of the place, so that no zone is reckoned with. */
export function date(text) {
  const [, day, hour] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?/.exec(text) ?? [];
  const when = new Date(`${day}T${hour ?? "00:00"}:00Z`);
  return Number.isNaN(when.getTime()) ? String(text) : (hour ? moments : dates).format(when);
}

function size(bytes) {
  const [unit, divisor] = bytes < 1e6 ? ["kB", 1e3] : ["MB", 1e6];
  return `${new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 }).format(bytes / divisor)} ${unit}`;
}

/** Width over height, within what a row of pictures can show; 4:3 where it is not known. */
export function aspectOf(columns) {
  const aspect = columns.width / columns.height;
  return aspect > 0 ? Math.min(2.4, Math.max(0.6, aspect)) : 4 / 3;
}

/** What to call a picture: its first caption, else its file or id. */
export const titleOf = (item) => item.captions[0] ?? item.columns.title ?? item.columns.file ?? item.id;

/** A caption as a heading: without the full stop at its end. */
export const heading = (text, most) => short(text.replace(/[\s.。]+$/u, "") || text, most);

/** A title that a label can hold. */
export const short = (text, most = 160) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);
