// Filters as text: `year >= 2020 and tags has "beach"`. The server reads and checks them; here they are only put
// together, and taken apart again into the conditions that this page writes.

import { date } from "./facts.js";

const PLAIN = /^[^\W\d][\w.-]*$/;
const KEYWORDS = new Set(["and", "or", "not", "in", "has", "contains", "between", "true", "false"]);

// A quote inside of quotes is written twice.
const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
const unquoted = (written) => written.slice(1, -1).replaceAll(written[0] + written[0], written[0]);
const columnName = (name) => (PLAIN.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : quoted(name));
const literal = (value) => (typeof value === "string" ? quoted(value) : String(value));

export const condition = (column, operator, value) => `${columnName(column)} ${operator} ${literal(value)}`;

/** The parts of a filter that all must hold; one part where it has an "or" outside of brackets. */
export function partsOf(where) {
  const parts = [];
  let part = "";
  let depth = 0;
  const tokens = where.match(/"(?:[^"]|"")*"|'(?:[^']|'')*'|[\p{L}_][\p{L}\p{N}_.-]*|[^]/gu) ?? [];
  let between = false;
  for (const token of tokens) {
    if (token === "(" || token === "[") depth++;
    if (token === ")" || token === "]") depth--;
    const word = depth === 0 ? token.toLowerCase() : "";
    if (word === "or") return [where.trim()];
    if (word === "and" && !between) {
      parts.push(part.trim());
      part = "";
    } else part += token;
    // "between 1 and 2" is one condition.
    if (word === "between" || word === "and") between = word === "between";
  }
  return [...parts, part.trim()].filter(Boolean);
}

export const joined = (parts) => parts.filter(Boolean).join(" and ");

/** {column, operator, value} of a part that this page could have written, else null. */
export function readCondition(part) {
  const read = /^("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_.-]*)\s*(==|<=|>=|<|>|\bhas\b|\bcontains\b)\s*(.+)$/su.exec(part);
  if (!read) return null;
  const [, column, operator, written] = read;
  const value = readLiteral(written.trim());
  return value === null ? null : { column: column[0] === '"' ? unquoted(column) : column, operator, value };
}

function readLiteral(written) {
  if (/^("(?:[^"]|"")*"|'(?:[^']|'')*')$/s.test(written)) return unquoted(written);
  if (/^(true|false)$/i.test(written)) return written.toLowerCase() === "true";
  return written !== "" && Number.isFinite(Number(written)) ? Number(written) : null;
}

const SHOWN = { "==": "is", ">=": "from", "<=": "to", "<": "before", ">": "above", has: "", contains: "has" };

/** A part as people read it; as it is written where this page did not write it. */
export function partText(part) {
  const read = readCondition(part);
  if (!read) return part;
  if (read.value === true || read.value === false) return `${read.column}: ${read.value ? "yes" : "no"}`;
  const shown = SHOWN[read.operator];
  const day = /^(\d{4}-\d\d-\d\d)(T[\d:]+)?$/.exec(read.value);
  const value = day ? date(day[1]) : String(read.value);
  return shown === "" ? `${read.column}: ${value}` : `${read.column} ${shown} ${value}`;
}
