// The sheet with filters: a field for each column, an expression for what fields cannot say, and how to search.

import { ask } from "./api.js";
import { element, make } from "./dom.js";
import { counted } from "./facts.js";
import { makeFinder } from "./finder.js";
import { condition, joined, partsOf, readCondition } from "./where.js";

const FIRST = ["taken", "folder", "tags"];
const TECHNICAL = new Set(["file", "bytes", "width", "height", "format", "modified", "latitude", "longitude"]);
const AGAIN = [0, 1500, 4000]; // milliseconds after which the columns are asked for again while the sheet is untouched
const COUNTING = 1000; // milliseconds after which they are asked for again while the server counts
const NOT_OFFERED = new Set(["hash"]);

/** @param on {open(search), refresh(): Promise} `refresh` asks the server what columns there are by now, and offers them. */
export function makeFilters(on) {
  const sheet = element("filters");
  let columns = [];
  let fields = [];
  let search = null;
  let pictures = 0;
  // A year that stands beside the day was read from it.
  const isTechnical = ({ name }) => TECHNICAL.has(name) || (name === "year" && columns.some((one) => one.name === "taken"));
  let touched = false; // whether somebody has changed a field
  let timer;

  function offer(about) {
    pictures = about.pictures;
    const before = JSON.stringify(columns);
    const captions = about.captions ? [{ name: "captions", type: "texts", values: [], more: false, rows: about.captions }] : [];
    const offered = [...about.columns.filter(({ name }) => !NOT_OFFERED.has(name) && name !== "captions"), ...captions];
    columns = [...FIRST.flatMap((name) => offered.filter((column) => column.name === name)), ...offered.filter(({ name }) => !FIRST.includes(name))];
    element("counting").hidden = columns.every(({ rows }) => rows !== null);
    // Who opens the sheet before the server has told of its columns gets their fields when they come.
    if (sheet.open && !fields.length) fill(element("typed-where").value);
    else if (sheet.open && !touched && before !== JSON.stringify(columns)) fill(search.where);
  }

  function open(asked) {
    search = asked;
    fill(search.where);
    element("fold").checked = search.fold !== "false";
    element("to-the-end").checked = search.end !== "false";
    element("variety").checked = Number(search.diversity) > 0;
    element("words").value = search.words;
    element("favourites-alone").checked = Boolean(search.favourites);
    touched = false;
    sheet.showModal();
    for (const time of AGAIN) setTimeout(again, time);
  }

  /** Ask what columns there are by now, until all are counted. */
  async function again() {
    if (!sheet.open || touched) return;
    await on.refresh().catch(() => {});
    clearTimeout(timer);
    if (!element("counting").hidden) timer = setTimeout(again, COUNTING);
  }

  /** Fields for the columns; what they cannot say stays an expression. */
  function fill(where) {
    const parts = partsOf(where).map((part) => ({ part, read: readCondition(part) }));
    const used = new Set(parts.map(({ read }) => read?.column));
    // What is the same for all pictures parts nothing.
    const offered = columns.filter((column) => !isConstant(column, pictures) || used.has(column.name));
    fields = offered.map((column) => fieldOf(column, parts));
    const technical = offered.map(isTechnical);
    element("columns").replaceChildren(...fields.filter((_, place) => !technical[place]).map((field) => field.element));
    element("further-columns").replaceChildren(...fields.filter((_, place) => technical[place]).map((field) => field.element));
    element("more-columns").hidden = !technical.some(Boolean);
    element("more-columns").open = offered.some((column) => isTechnical(column) && used.has(column.name));
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
      favourites: element("favourites-alone").checked ? "true" : "",
      show: "",
      by: "",
    });
  };
  element("filters-close").onclick = () => sheet.close();
  element("filters-reset").onclick = () => {
    sheet.close();
    on.open({ ...search, where: "", fold: "", diversity: "", words: "", end: "", favourites: "", show: "" });
  };
  sheet.addEventListener("input", () => (touched = true));
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  return { offer, open };
}

/** Whether a column has one value, and all pictures have it. */
function isConstant({ least, most, values, more, rows, about }, pictures) {
  return rows !== null && !about && rows >= pictures && ((values.length === 1 && !more && !values[0].inner) || (least !== null && least !== undefined && least === most));
}

/** A field for a column, filled from the parts of the filter that it can say, which it takes. */
function fieldOf(column, parts) {
  const take = (operator) => {
    const found = parts.find((one) => !one.taken && one.read?.column === column.name && one.read.operator === operator);
    if (found) found.taken = true;
    return found?.read.value ?? "";
  };
  const { values, about } = column;
  if (column.name === "folder" && values.length) return finding(column, take);
  if (column.type === "number") return range(column, take, "number");
  if (column.type === "truth value") return choice(column, take, [[true, "yes"], [false, "no"]]);
  if (column.type === "texts" && values.length) return ticks(column, take, values);
  if (column.type === "date") return range(column, take, "date");
  if (values.length && column.more) return finding(column, take);
  if (values.length) return choice(column, take, values.map(({ value, rows }) => [value, `${value} (${counted(rows, about)})`]));
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
    element: labelled("div", column.name, make("span", { class: type === "date" ? "range dates" : "range" }, make("span", { class: "from", textContent: "from" }), from, make("span", { textContent: "to" }), to)),
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

function finding(column, take) {
  const finder = makeFinder(column, take("=="));
  return { element: finder.element, conditions: () => (finder.value() === "" ? [] : [condition(column.name, "==", finder.value())]) };
}

function ticks(column, take, values) {
  const taken = [];
  for (let value = take("has"); value !== ""; value = take("has")) taken.push(value);
  const rows = new Map(values.map((one) => [one.value, one.rows]));
  const choices = [...new Set([...taken, ...rows.keys()])];
  const boxes = choices.map((value) => make("input", { type: "checkbox", checked: taken.includes(value) }));
  const text = (value) => make("span", {}, make("span", { textContent: value, dir: "auto" }), rows.has(value) ? make("small", { textContent: ` ${counted(rows.get(value), column.about)}` }) : "");
  const shown = choices.map((value, place) => make("label", { class: "pick" }, boxes[place], text(value)));
  const other = column.more ? another(column) : null;
  const picks = make("div", { class: "picks" }, ...shown);
  return {
    element: make("fieldset", { class: "column" }, make("legend", { textContent: column.name }), picks, ...(other ? other.elements : [])),
    conditions: () =>
      [...choices.filter((_, place) => boxes[place].checked), other?.field.value.trim()]
        .filter(Boolean)
        .map((value) => condition(column.name, "has", value)),
  };
}

/** A box for a text that is not listed; the server says which ones there are. */
function another({ name }) {
  const list = make("datalist", { id: `others-${name}` });
  const field = make("input", { type: "text", placeholder: "another…", maxLength: 500, autocomplete: "off", dir: "auto", aria: { label: `another of ${name}` } });
  field.setAttribute("list", list.id);
  field.addEventListener("input", async () => {
    const contains = field.value.trim();
    const found = contains ? await ask("values", new URLSearchParams({ column: name, contains })).catch(() => null) : null;
    if (found && field.value.trim() === contains) list.replaceChildren(...found.values.map(({ value, rows }) => make("option", { value, label: `${value} (${counted(rows, found.about)})` })));
  });
  return { field, elements: [field, list] };
}

function containing(column, take) {
  const field = make("input", { type: "text", value: take("contains"), placeholder: "contains…", maxLength: 500, autocomplete: "off", dir: "auto" });
  return {
    element: labelled("label", column.name, field),
    conditions: () => (field.value.trim() ? [condition(column.name, "contains", field.value.trim())] : []),
  };
}

const labelled = (tag, name, field) => make(tag, { class: "column" }, make("span", { textContent: name }), field);
