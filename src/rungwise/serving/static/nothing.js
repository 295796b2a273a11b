// Nothing relevant was found: what that means, and what to try, as buttons.

import { ask } from "./api.js";
import { parametersOf } from "./address.js";
import { element, make } from "./dom.js";
import { heading, number } from "./facts.js";
import { joined } from "./where.js";

const MOST_WORDS = 3;
const MOST_EXAMPLES = 3;
const SHORTEST = 4; // letters of a word that is looked for in captions
const COUNTED = 50; // pictures that are counted
const NO_COLUMNS = new Set(["file", "folder", "format", "hash", "taken", "modified"]);

/** @param on {open(search), nearest()} */
export function makeNothing(on) {
  let columns = []; // whose texts are looked through for the words of a query
  let pictures = 0;
  let examples = []; // texts that find something here
  let shown = null; // what is said now, and of which search

  function offer(about) {
    [pictures, examples] = [about.pictures, about.examples.slice(0, MOST_EXAMPLES)];
    const texts = about.columns.filter(({ name, type }) => (type === "text" || type === "texts") && !NO_COLUMNS.has(name));
    columns = texts.slice(0, 4).map(({ name, type }) => [name, type === "texts" ? "has" : "contains"]);
    if (about.captions) columns = [["captions", "contains"], ...columns.filter(([name]) => name !== "captions")];
    if (shown) show(shown.search, shown.answer, shown.signal); // it was said before this was known
  }

  function hide() {
    shown = null;
    element("verdict").classList.remove("empty");
    element("nothing").hidden = true;
  }

  /** Say it of a search, and find out what else there is. */
  function show(search, answer, signal) {
    const now = (shown = { search, answer, signal });
    const among = search.where ? "the pictures that pass the filters" : pictures ? `the ${number(pictures)} pictures` : "the pictures";
    const words = !search.pictures.length;
    const none = `None of ${among} fits well, as far as the search can tell.${words ? " Try other words, or more general ones." : ""}`;
    element("nothing-text").textContent = answer.hits.length ? none : "";
    element("here").replaceChildren(...examples.map((text) => tried(heading(text, 60), () => on.open({ ...search, q: text, where: "", show: "" }))));
    element("here-note").hidden = element("here").hidden = !words || !examples.length;
    element("tries").replaceChildren(
      ...answer.unknown.filter(({ word, near }) => !near.length && without(search.q, word)).map(({ word }) => tried(`Leave out “${word}”`, () => on.open({ ...search, q: without(search.q, word), show: "" }))),
      ...(answer.hits.length ? [tried("Show the nearest anyway", on.nearest)] : []),
    );
    element("verdict").classList.add("empty");
    element("nothing").hidden = false;
    if (search.where) withoutFilters(now);
    byWords(now);
  }

  const tried = (text, act) => make("li", {}, make("button", { type: "button", class: "soft", textContent: text, dir: "auto", onclick: act }));

  function add(now, text, act) {
    if (shown === now) element("tries").prepend(tried(text, act));
  }

  async function withoutFilters(now) {
    const { search, signal } = now;
    const wider = { ...search, where: "", show: "" };
    const found = await count(parametersOf(wider), signal);
    const fitting = found?.end?.shown ?? 0;
    if (fitting) add(now, `Remove the filters: ${pictured(fitting)} then`, () => on.open(wider));
  }

  async function byWords(now) {
    const { search, answer, signal } = now;
    const words = answer.terms.filter((term) => term.kind === "words" && term.weight > 0).flatMap(({ text }) => text.match(/\p{L}[\p{L}\p{N}'’-]*/gu) ?? []);
    const long = [...new Set(words)].filter((word) => word.length >= SHORTEST).sort((one, other) => other.length - one.length);
    await Promise.all(
      long.slice(0, columns.length ? MOST_WORDS : 0).map(async (word) => {
        const where = columns.map(([name, operator]) => written(name, operator, word)).join(" or ");
        const found = await count(new URLSearchParams({ where }), signal);
        const many = found?.hits.length ?? 0;
        if (many) add(now, mentions(word, found), () => on.open({ ...search, q: "", pictures: [], where: joined([where]), show: "" }));
      }),
    );
  }

  return { offer, show, hide };
}

/** A text without a word, and without the room that it took. */
const without = (text, word) => text.replace(word, "").replace(/\s+/g, " ").trim();
const written = (name, operator, word) => `"${name.replaceAll('"', '""')}" ${operator} "${word}"`;
const pictured = (count, more) => `${number(count)}${more ? " or more" : ""} ${count === 1 && !more ? "picture" : "pictures"}`;

/** "3 captions mention “beach”"; pictures, where it is their columns that do. */
function mentions(word, { hits, more }) {
  const captions = hits.flatMap((hit) => hit.captions).filter((text) => text.toLowerCase().includes(word.toLowerCase())).length;
  const [many, one] = captions ? [captions, "caption"] : [hits.length, "picture"];
  return many === 1 && !more ? `1 ${one} mentions “${word}”` : `${number(many)}${more ? " or more" : ""} ${one}s mention “${word}”`;
}

function count(asked, signal) {
  asked.set("k", COUNTED);
  asked.set("typed", "false");
  return ask("search", asked, { signal }).catch(() => null); // then there is nothing to offer
}
