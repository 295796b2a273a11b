// A field for one value of many: the values with their numbers of pictures, folders within folders, and a box to type in.

import { ask } from "./api.js";
import { icon, make } from "./dom.js";
import { counted } from "./facts.js";

const FOUND = 30;
const ALL = 1000; // values that the server gives at once
const PAUSE = 150; // milliseconds without a key until values are looked for
const AGAIN = 1000; // milliseconds until values that are still being counted are asked for again

/** @param column As `/about` has it. @param chosen The value that is chosen at first; empty for any. */
export function makeFinder(column, chosen) {
  const { name } = column;
  const isFolder = name === "folder";
  const group = `finder-${name}`;
  const list = make("ul", { class: "finder", aria: { label: name } });
  const box = make("input", { type: "search", placeholder: isFolder ? "find a folder…" : "find…", maxLength: 500, autocomplete: "off", dir: "auto", aria: { label: `find in ${name}` } });
  const status = make("p", { class: "quiet unfound", role: "status" });
  let timer;
  let latest = 0;

  const told = (text) => (status.textContent = text);

  function entry(value, text, rows, inner, about = column.about) {
    const radio = make("input", { type: "radio", name: group, checked: value === chosen });
    radio.onchange = () => (chosen = value);
    const label = make("label", {}, radio, make("span", { class: "value", textContent: text, dir: "auto", title: value }), rows === null ? "" : make("span", { class: "quiet", textContent: counted(rows, about) }));
    const item = make("li", {}, inner ? unfolding(value, text) : "", label);
    if (!inner) item.classList.add("leaf");
    return item;
  }

  /** A button that shows the folders within one. */
  function unfolding(folder, text) {
    const button = make("button", { type: "button", class: "unfold", aria: { label: `folders in ${text}`, expanded: "false" } }, icon("after"));
    button.onclick = async () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      const item = button.parentElement;
      if (open) item.querySelector("ul")?.remove();
      else await ofFolder(folder, (values, more) => button.getAttribute("aria-expanded") === "true" && item.append(make("ul", {}, ...entries(values), ...(more ? [others(folder)] : []))));
    };
    return button;
  }

  const others = (folder) => make("li", { class: "quiet leaf", textContent: `more than ${ALL} folders: type a part of the name` , title: folder });

  /** Entries of a level of folders, by their last names; those of other columns by the whole value. */
  const entries = (values) => values.map(({ value, rows, inner }) => entry(value, isFolder ? value.slice(value.lastIndexOf("/") + 1) : value, rows, inner));

  /** "any", and what is chosen where it is not among the values. */
  function heads(values) {
    const missing = chosen !== "" && !values.some(({ value }) => value === chosen);
    return [entry("", "any", null, false), ...(missing ? [entry(chosen, String(chosen), null, false)] : [])];
  }

  function draw(values, rest = []) {
    list.replaceChildren(...heads(values), ...rest);
  }

  /** The values that the page knows: the outermost folders, or the most frequent values. */
  function start() {
    told("");
    const rest = entries(column.values);
    if (column.more && isFolder) {
      const button = make("button", { type: "button", class: "soft", textContent: "all folders" });
      button.onclick = () => ofFolder("", (values, more) => draw(values, [...entries(values), ...(more ? [others("")] : [])]));
      rest.push(make("li", { class: "leaf" }, button));
    } else if (column.more) rest.push(make("li", { class: "quiet leaf", textContent: "there are others: type a part of them" }));
    draw(column.values, rest);
  }

  async function asked(parameters) {
    try {
      return await ask("values", new URLSearchParams({ column: name, ...parameters }));
    } catch (error) {
      told(error.message);
      return null;
    }
  }

  async function ofFolder(folder, show) {
    const found = await asked({ within: folder, k: ALL });
    if (found) show(found.values, found.more);
  }

  async function look() {
    const turn = ++latest;
    const typed = box.value.trim();
    if (!typed) return start();
    const found = await asked({ contains: typed, k: FOUND });
    if (!found || turn !== latest) return;
    if (!found.ready) {
      told("The pictures are being counted…");
      timer = setTimeout(() => list.isConnected && look(), AGAIN);
      return;
    }
    told(found.values.length ? (found.more ? "There are others: type further." : "") : `No ${isFolder ? "folder" : "value"} has “${typed}” in it.`);
    draw(found.values, found.values.map(({ value, rows }) => entry(value, value, rows, false, found.about)));
  }

  box.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  };
  // Who types a name that one value has means that one; the sheet is not sent by this.
  box.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const left = [...list.querySelectorAll("input")].filter((radio) => !radio.checked);
    const only = [...list.children].at(-1)?.querySelector("input");
    if (box.value.trim() && list.children.length === 2 && left.includes(only)) only.click();
  };
  start();
  return { element: make("fieldset", { class: "column" }, make("legend", { textContent: name }), box, list, status), value: () => chosen };
}
