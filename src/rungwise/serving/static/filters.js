// The sheet with filters: a field for each column, an expression for what fields cannot say, and how to search.

import { element, make } from "./dom.js";
import { condition, joined, partsOf, readCondition } from "./where.js";

const MOST_CHOICES = 30;
const LAST = new Set(["file", "folder", "bytes", "width", "height", "format", "modified", "latitude", "longitude"]);
const NOT_OFFERED = new Set(["hash"]);

/** @param on {open(search)} */
export function makeFilters(on) {
  const sheet = element("filters");
  let columns = [];
  let fields = [];
  let search = null;

  function offer(about) {
    const captions = about.captions ? [{ name: "captions", type: "texts", values: [] }] : [];
    const offered = [...about.columns.filter(({ name }) => !NOT_OFFERED.has(name) && name !== "captions"), ...captions];
    columns = [...offered.filter(({ name }) => !LAST.has(name)), ...offered.filter(({ name }) => LAST.has(name))];
    // Who opens the sheet before the server has told of its columns gets their fields when they come.
    if (sheet.open && !fields.length) fill(element("typed-where").value);
  }

  function open(asked) {
    search = asked;
    fill(search.where);
    element("fold").checked = search.fold !== "false";
    element("to-the-end").checked = search.end !== "false";
    element("variety").checked = Number(search.diversity) > 0;
    element("words").value = search.words;
    sheet.showModal();
  }

  /** Fields for the columns; what they cannot say stays an expression. */
  function fill(where) {
    const parts = partsOf(where).map((part) => ({ part, read: readCondition(part) }));
    fields = columns.map((column) => fieldOf(column, parts));
    element("columns").replaceChildren(...fields.map((field) => field.element));
    element("typed-where").value = joined(parts.filter((one) => !one.taken).map((one) => one.part));
  }

  element("filter-form").onsubmit = (event) => {
    event.preventDefault();
    sheet.close();
    on.open({
      ...search,
      where: joined([...fields.flatMap((field) => field.conditions()), element("typed-where").value.trim()]),
      fold: element("fold").checked ? "" : "false",
      diversity: element("variety").checked ? "0.5" : "",
      words: element("words").value,
      end: element("to-the-end").checked ? "" : "false",
      show: "",
      by: "",
    });
  };
  element("filters-close").onclick = () => sheet.close();
  element("filters-reset").onclick = () => {
    sheet.close();
    on.open({ ...search, where: "", fold: "", diversity: "", words: "", end: "", show: "" });
  };
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  return { offer, open };
}

/** A field for a column, filled from the parts of the filter that it can say, which it takes. */
function fieldOf(column, parts) {
  const take = (operator) => {
    const found = parts.find((one) => !one.taken && one.read?.column === column.name && one.read.operator === operator);
    if (found) found.taken = true;
    return found?.read.value ?? "";
  };
  const values = column.values.slice(0, MOST_CHOICES);
  if (column.type === "number") return range(column, take, "number");
  if (column.type === "truth value") return choice(column, take, [[true, "yes"], [false, "no"]]);
  if (column.type === "texts" && values.length) return ticks(column, take, values);
  if (/^\d{4}-\d\d-\d\d/.test(column.least ?? "")) return range(column, take, "date");
  if (values.length) return choice(column, take, values.map(({ value, rows }) => [value, `${value} (${rows})`]));
  return containing(column, take);
}

const DAY_END = "T23:59:59";

function range(column, take, type) {
  const shown = (value) => (type === "date" ? String(value ?? "").slice(0, 10) : String(value ?? ""));
  const input = (label, value, hint) =>
    make("input", { type, step: type === "number" ? "any" : null, value: shown(value), placeholder: shown(hint), aria: { label: `${column.name} ${label}` } });
  const from = input("from", take(">="), column.least);
  const to = input("to", take("<="), column.most);
  const value = (field, end) => (type === "number" ? Number(field.value) : field.value + end);
  return {
    element: labelled("div", column.name, make("span", { class: "range" }, from, make("span", { textContent: "to" }), to)),
    conditions: () => [
      from.value && condition(column.name, ">=", value(from, "")),
      to.value && condition(column.name, "<=", value(to, DAY_END)),
    ],
  };
}

function choice(column, take, choices) {
  const taken = take("==");
  const every = [["", "any"], ...choices];
  if (taken !== "" && !choices.some(([value]) => value === taken)) every.push([taken, String(taken)]);
  const field = make("select", {});
  field.append(...every.map(([value, text]) => make("option", { textContent: text, selected: value === taken })));
  return {
    element: labelled("label", column.name, field),
    conditions: () => (field.selectedIndex ? [condition(column.name, "==", every[field.selectedIndex][0])] : []),
  };
}

function ticks(column, take, values) {
  const taken = [];
  for (let value = take("has"); value !== ""; value = take("has")) taken.push(value);
  const choices = [...new Set([...taken, ...values.map(({ value }) => value)])];
  const boxes = choices.map((value) => make("input", { type: "checkbox", checked: taken.includes(value) }));
  const shown = choices.map((value, place) => make("label", { class: "pick" }, boxes[place], make("span", { textContent: value, dir: "auto" })));
  // Of many, only the most frequent are listed.
  const other = make("input", { type: "text", placeholder: "another…", maxLength: 500, autocomplete: "off", dir: "auto", aria: { label: `another of ${column.name}` } });
  const picks = make("div", { class: "picks" }, ...shown);
  return {
    element: make("fieldset", { class: "column" }, make("legend", { textContent: column.name }), picks, ...(values.length < MOST_CHOICES ? [] : [other])),
    conditions: () =>
      [...choices.filter((_, place) => boxes[place].checked), other.value.trim()]
        .filter(Boolean)
        .map((value) => condition(column.name, "has", value)),
  };
}

function containing(column, take) {
  const field = make("input", { type: "text", value: take("contains"), placeholder: "contains…", maxLength: 500, autocomplete: "off", dir: "auto" });
  return {
    element: labelled("label", column.name, field),
    conditions: () => (field.value.trim() ? [condition(column.name, "contains", field.value.trim())] : []),
  };
}

const labelled = (tag, name, field) => make(tag, { class: "column" }, make("span", { textContent: name }), field);
