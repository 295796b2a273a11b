// The page: which search is shown, and how one comes to another.
//
// An address says what is searched. Every entry of the history keeps, beside it, how far one had scrolled; what was
// found is kept in memory, so that going back shows it at once and in place.

import { addressOf, asksForSomething, nothing, sameAnswer, searchOf } from "./address.js";
import { ask } from "./api.js";
import { makeChips } from "./chips.js";
import { makeDetail } from "./detail.js";
import { element, make, wantsNewTab } from "./dom.js";
import { makeFavourites } from "./favourites.js";
import { makeFilters } from "./filters.js";
import { makeGrades } from "./grades.js";
import { makeGrading } from "./grading.js";
import { makeGrid, onlyNearest } from "./grid.js";
import { makeIntake } from "./intake.js";
import { makeNothing } from "./nothing.js";
import { announce, complain, hush } from "./say.js";
import { makeSource } from "./source.js";
import { makeStart } from "./start.js";
import { isLess, LESS, textOf } from "./terms.js";
import { makeWhy } from "./why.js";

const MOST_KEPT = 20;
const ONE_BY_ONE = 500; // pictures that are asked for at once to come back to a place far down

let current = null; // the search that is shown
let running = null; // the request on its way, aborted by the next
let sample = null; // what the start page shows
let version = null; // of the index, as the last answer said
const kept = new Map(); // what was found, by the key of the entry in the history

const onTile = {
  open: (item) => showLarge(item.id, true),
  like,
  href: (item) => addressOf({ ...current, show: item.id }),
};
const grades = makeGrades({ learnt: () => show(current), possible: (now) => grading.possible(now) });
const grading = makeGrading(grades);
const why = makeWhy();
const grid = makeGrid({ ...onTile, grade: grades.put });
const nothingFound = makeNothing({
  open: go,
  nearest() {
    grades.nothingFound(false);
    grid.open();
  },
});
const start = makeStart({ ...onTile, search: go, address: addressOf });
const source = makeSource({ text: (text) => go({ ...nothing(), q: text }), item: (id) => showLarge(id, true), href: (id) => addressOf({ ...current, show: id }) });
const intake = makeIntake({
  waiting: (address, name) => {
    clearPage();
    element("query-row").hidden = true;
    source.preview(address, name);
  },
  given: (id, joins) => {
    const picture = { kind: "picture", id, weight: 1 };
    go(joins ? { ...current, pictures: [...current.pictures, picture], show: "", by: "" } : { ...nothing(), pictures: [picture] });
  },
  failed: () => show(current),
});
const favourites = makeFavourites({ open: go, search: () => current });
const filters = makeFilters({ open: go, refresh: describeCollection });
const chips = makeChips({ open: go, choosePicture: () => intake.choose(true), openFilters: () => filters.open(current) });
const detail = makeDetail({
  like,
  where: (part) => go({ ...nothing(), where: part }),
  turn: (item) => showLarge(item.id, false),
  jump: (id) => showLarge(id, false),
  href: (id) => addressOf({ ...current, show: id }),
  grade: grades.put,
  why: (item) => (item ? why.show(item) : why.hide()),
  favourite: favourites.show,
  closed: closeLarge,
});
const listShown = {
  items: () => (sample && !element("start").hidden && !grid.hits().length ? start.items(sample) : grid.hits()),
  more: () => grid.more(),
  hasMore: () => grid.hasMore(),
  end: () => grid.end(),
};

// History

const key = () => history.state?.key;

function remember() {
  history.replaceState({ ...history.state, scroll: scrollY, ...grid.place() }, "");
  const found = grid.kept();
  kept.delete(key());
  kept.set(key(), { search: current, found, sample });
  for (const old of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(old);
}

/** Go to a search; the way back leads to what is shown now. */
function go(search) {
  remember();
  history.pushState({ key: crypto.getRandomValues(new Uint32Array(2)).join("-") }, "", addressOf(search));
  show(search);
}

function like(item, weight) {
  const picture = { kind: "like", id: item.id, weight };
  // "More" asks for what is like this one; "less" leads away from it within what is searched.
  if (weight !== LESS || !asksForSomething(current)) go({ ...nothing(), pictures: [picture], where: current.where });
  else go({ ...current, pictures: [...current.pictures.filter((one) => one.id !== item.id), picture], show: "", by: "" });
}

function showLarge(id, asEntry) {
  const search = { ...current, show: id };
  if (asEntry && !detail.isOpen()) {
    remember();
    history.pushState({ ...history.state, large: true }, "", addressOf(search));
  } else history.replaceState(history.state, "", addressOf(search));
  current = search;
  detail.open(id, listShown);
}

function closeLarge() {
  const id = current.show;
  if (history.state?.large) history.back();
  else {
    current = { ...current, show: "" };
    history.replaceState(history.state, "", addressOf(current));
    detail.close();
  }
  focusOn(id);
}

/** Put the focus on the picture that was shown large. */
function focusOn(id) {
  const link = [...document.querySelectorAll("a.open")].find((one) => one.dataset.id === id);
  // The dialog gives the focus back to where it came from first.
  setTimeout(() => link?.focus({ preventScroll: false }), 0);
}

addEventListener("popstate", () => {
  const search = searchOf(location.search);
  if (current && sameAnswer(search, current)) {
    current = search;
    if (search.show) detail.open(search.show, listShown);
    else detail.close();
    return;
  }
  show(search, true);
});

let settling;
addEventListener("scroll", () => {
  clearTimeout(settling);
  settling = setTimeout(() => running === null && remember(), 150);
});
addEventListener("pagehide", () => running === null && remember());
history.scrollRestoration = "manual";

// Showing

function clearPage() {
  hush();
  detail.close();
  grid.clear();
  start.hide();
  source.hide();
  nothingFound.hide();
  element("found").hidden = true;
  for (const id of ["remark", "reading", "unknown"]) element(id).hidden = true;
  element("results-title").textContent = "";
}

async function show(search, back = false) {
  running?.abort();
  const request = (running = new AbortController());
  const before = back ? kept.get(key()) : null;
  const place = back ? history.state : null;
  current = search;
  clearPage();
  grades.of(search);
  why.of(search);
  favourites.of(search);
  sample = null;
  element("query").value = search.q;
  element("clear").hidden = !asksForSomething(search);
  const browsing = !asksForSomething(search);
  const placeholder = search.pictures.length ? "Add words to it" : "Describe a picture";
  element("query").placeholder = placeholder;
  document.title = search.q ? `${search.q} – rungwise` : "rungwise";
  if (!back) scrollTo(0, 0);
  try {
    if (browsing) await showStart(search, before, place, request.signal);
    else await showFound(search, before, place, request.signal);
    if (request.signal.aborted) return;
    if (back && place?.scroll) await comeBackTo(place.scroll, request.signal);
    if (request.signal.aborted) return;
    if (search.show) detail.open(search.show, listShown);
  } catch (error) {
    if (error.name === "AbortError") return;
    element("results-title").textContent = "No pictures";
    complain(error.message, "Try again", () => show(search, back));
  } finally {
    if (running === request) running = null;
  }
}

/** Scroll to where one was; where the page is not that long yet, more pictures are loaded. */
async function comeBackTo(scroll, signal) {
  const count = () => grid.hits().length;
  for (let known = -1; count() > known; ) {
    scrollTo(0, scroll);
    if (scrollY >= Math.floor(scroll) || !grid.hasMore()) return;
    known = count();
    await grid.more();
    if (signal.aborted) return;
  }
}

/** How much was shown at a place in the history. */
const asBefore = (place) => ({ count: Math.min(place?.count ?? 0, ONE_BY_ONE), opened: Boolean(place?.opened) });

async function showStart(search, before, place, signal) {
  chips.hide();
  const by = search.by || "clusters";
  if (by === "newest") {
    start.head(by);
    element("found").hidden = false;
    if (before?.found) grid.restore(before.found);
    else await grid.show(search, asBefore(place), signal);
  } else if (before?.sample) {
    sample = before.sample;
    start.restore(by, sample);
  } else {
    sample = await start.show(by, signal);
    announce(`${start.items(sample).length} pictures to start with`);
  }
}

async function showFound(search, before, place, signal) {
  const [picture] = search.pictures;
  if (picture && search.pictures.length === 1 && !isLess(picture)) source.show(picture);
  element("found").hidden = false;
  element("results-title").textContent = "Searching…";
  if (!before?.found) chips.show(search, termsAsked(search), false);
  if (before?.found) grid.restore(before.found);
  const answer = before?.found?.first ?? (await grid.show(search, asBefore(place), signal));
  search.typed = false; // what follows from it was not typed anew
  chips.show(search, answer.terms, answer.hits.some((hit) => hit.has_file));
  describe(search, answer, signal);
}

/** The terms of a search before the server has read its text. */
function termsAsked(search) {
  const pictures = search.pictures.map(({ kind, id, weight }) => ({ kind, [kind === "like" ? "id" : "picture"]: id, weight }));
  return search.q ? [{ kind: "words", text: search.q, weight: 1 }, ...pictures] : pictures;
}

function describe(search, answer, signal) {
  if (version !== null && version !== answer.index_version) describeCollection();
  version = answer.index_version;
  const single = answer.terms.length === 1 && answer.terms[0].kind === "words";
  const like = answer.terms.length === 1 && !single;
  const title = single ? `Pictures for “${answer.terms[0].text}”` : like ? "Similar pictures" : answer.terms.length ? "Pictures that fit" : search.favourites ? "Favourites" : "Pictures, newest first";
  const found = answer.hits.length > 0;
  const irrelevant = found && answer.end?.nothing && !onlyNearest(search, answer);
  grades.nothingFound(irrelevant || !found);
  element("results-title").textContent = irrelevant ? "Nothing relevant found" : found ? title : emptyText(search);
  element("remark").textContent = answer.end?.nothing ? "" : sentence(answer.end?.remark);
  element("remark").hidden = !element("remark").textContent;
  element("reading").textContent = [answer.terms.length > 1 ? answer.reading : "", ...answer.notes].filter(Boolean).join(" · ");
  element("reading").hidden = !element("reading").textContent;
  element("unknown").replaceChildren(...answer.unknown.map((one) => unknownLine(search, answer.terms, one)));
  element("unknown").hidden = !answer.unknown.length;
  if (irrelevant || (!found && search.where && answer.terms.length)) nothingFound.show(search, answer, signal);
  if (irrelevant || !found) announce(element("results-title").textContent);
}

const sentence = (line) => (line ? `${line[0].toUpperCase()}${line.slice(1)}.` : "");

const emptyText = (search) => (search.favourites && !search.where && !search.q ? "There are no favourites yet. Open a picture and press Favourite." : search.where ? "No picture is like that. Remove a filter to see more." : "There is no picture to show.");

/** "The model does not know 'sneakers'", with the words that it does know as buttons. */
function unknownLine(search, terms, { word, near, line }) {
  // The sentence ends with the near words, which are buttons here.
  const listed = near.join(", ");
  const text = listed && line.endsWith(listed) ? line.slice(0, -listed.length) : line;
  const made = make("p", {}, make("span", { textContent: text, dir: "auto" }));
  for (const other of near) {
    const button = make("button", { type: "button", class: "soft", textContent: other, aria: { label: `Search for ${other} in place of ${word}` } });
    button.onclick = () => go({ ...search, q: replaced(search.q, word, other), show: "" });
    made.append(button);
  }
  return made;
}

function replaced(text, word, other) {
  const at = text.toLowerCase().indexOf(word.toLowerCase());
  return at < 0 ? textOf([{ text: other, weight: 1 }]) : text.slice(0, at) + other + text.slice(at + word.length);
}

async function describeCollection() {
  const about = await ask("about");
  start.describe(about);
  filters.offer(about);
  grading.offer(about);
  grades.offer(about);
  why.offer(about);
  nothingFound.offer(about);
  favourites.offer(about);
  intake.limit(about.max_upload_bytes);
  grid.limit(about.max_offset);
}

// What people do

element("search").onsubmit = (event) => {
  event.preventDefault();
  const q = element("query").value.trim();
  if (q || asksForSomething(current)) go({ ...current, q, typed: true, show: "", by: "" });
  else element("query").focus();
};
element("clear").onclick = () => {
  go(nothing());
  element("query").focus();
};
element("home").onclick = (event) => {
  if (wantsNewTab(event)) return;
  event.preventDefault();
  go(nothing());
};
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  element("query").select();
});
addEventListener("locked", () => element("locked").open || element("locked").showModal());
element("token-form").onsubmit = (event) => {
  event.preventDefault();
  // The server takes the token out of the address and keeps a cookie in its place.
  const asked = new URLSearchParams(location.search);
  asked.set("token", element("token").value);
  location.replace(`./?${asked}`);
};

if (!history.state?.key) history.replaceState({ key: "first" }, "");
describeCollection().catch(() => {}); // what is shown next says what is wrong
show(searchOf(location.search), true);
if (matchMedia("(hover: hover)").matches && !asksForSomething(current)) element("query").focus();
