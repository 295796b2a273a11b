// The pictures found: in bands up to where relevance ends, more as one scrolls, none twice, and to be put back as it was.

import { ask } from "./api.js";
import { parametersOf } from "./address.js";
import { isBeyond, makeBands } from "./bands.js";
import { element, make } from "./dom.js";
import { number } from "./facts.js";
import { announce, hush } from "./say.js";
import { tile } from "./tile.js";

const FIRST = 30;
const NEXT = 60;
const AHEAD = "800px"; // loaded before they are seen

/** @param on As for tiles. */
export function makeGrid(on) {
  const place = element("results");
  const end = element("end");
  let state = null; // of the search that is shown
  let furthest = Infinity; // the server's largest offset
  const bands = makeBands(place, (hit) => tile(hit, state.first.scale, on));

  const watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(), { rootMargin: AHEAD });

  /** Whether the server has more than it gives. */
  const cut = () => state.more && state.offset > furthest;
  const further = () => state.more && !cut();

  /** Whether relevance ends within what was loaded. */
  const ended = () => Boolean(state.first.end) && state.offset >= state.first.end.shown && (further() || state.hits.some(isBeyond));
  const hidden = () => ended() && !state.opened;
  const shown = () => (hidden() ? state.hits.filter((hit) => !isBeyond(hit)) : state.hits);

  function add(answer) {
    const fresh = answer.hits.filter((hit) => !state.ids.has(hit.id));
    for (const hit of fresh) state.ids.add(hit.id);
    state.hits.push(...fresh);
    state.offset += answer.hits.length;
    state.more = answer.more && answer.hits.length > 0;
    draw(fresh);
  }

  function draw(fresh) {
    bands.add(fresh.filter((hit) => !isBeyond(hit)));
    if (ended() && !state.first.end.nothing && !place.querySelector(".limit")) {
      bands.drawLimit(labelOfRest(), open);
      if (state.opened) bands.drawPassed(close);
    }
    if (!hidden()) bands.add(fresh.filter(isBeyond), headingOfRest());
    bands.count(further() && !hidden());
  }

  function headingOfRest() {
    if (!state.first.end?.nothing) return "Less related";
    return onlyNearest(state.search, state.first) ? "Nothing is much like it; these are the nearest" : "The nearest, although they hardly fit";
  }

  function labelOfRest() {
    const count = state.hits.filter(isBeyond).length;
    return further() || !count ? "Show less related pictures" : `Show ${number(count)} less related`;
  }

  /** Show what is after the end, too. */
  function open() {
    state.opened = true;
    bands.drawPassed(close);
    draw(state.hits.filter(isBeyond));
    said();
    bands.first()?.focus();
  }

  function close() {
    state.opened = false;
    bands.fold();
    bands.drawLimit(labelOfRest(), open);
    place.querySelector(".limit button").focus();
    said();
  }

  function said() {
    const visible = shown().length;
    const count = `${number(visible)} ${visible === 1 ? "picture" : "pictures"}`;
    const goesOn = further() && !hidden();
    end.textContent = "";
    if (hidden()) {
      if (visible) announce(`${count}; relevance ends after ${visible === 1 ? "it" : number(visible)}`);
    } else {
      announce(goesOn ? `${count}; more follow further down` : count);
      if (cut()) end.textContent = `These are the first ${count}. Say more of what you look for to see others.`;
      else if (!goesOn && visible) end.textContent = `That is all: ${count}.`;
    }
    // An observer only speaks when something comes into sight: looking anew makes it speak of what is in sight already.
    watcher.unobserve(end);
    if (goesOn) watcher.observe(end);
  }

  /** Show a search; gives the first answer, or throws what went wrong. */
  async function show(search, { count = 0, opened = false }, signal) {
    clear();
    skeletons();
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await page(search, 0, Math.max(FIRST, count), signal);
      clear();
      state = { search, first: answer, hits: [], ids: new Set(), offset: 0, more: false, opened: opened || onlyNearest(search, answer) };
      add(answer);
      said();
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") clear();
      throw error;
    } finally {
      if (!signal.aborted) place.setAttribute("aria-busy", "false");
    }
  }

  /** Load the next pictures; those who ask while they are on their way get the same. */
  function more() {
    const mine = state;
    if (!mine || !further()) return Promise.resolve();
    mine.loading ??= next(mine).finally(() => (mine.loading = null));
    return mine.loading;
  }

  async function next(mine) {
    try {
      const answer = await page(mine.search, mine.offset, NEXT);
      if (mine !== state) return;
      hush();
      add(answer);
      said();
    } catch (error) {
      if (mine !== state) return;
      watcher.unobserve(end);
      end.replaceChildren(
        make("span", { role: "alert", textContent: error.message }),
        make("button", { type: "button", class: "soft", textContent: "Load more", onclick: more }),
      );
    }
  }

  function clear() {
    watcher.unobserve(end);
    state = null;
    bands.clear();
    end.textContent = "";
  }

  function restore(kept) {
    clear();
    state = kept;
    draw(kept.hits);
    place.setAttribute("aria-busy", "false");
    said();
  }

  function skeletons() {
    const shapes = [1.5, 1, 0.75, 1.33, 1.5, 1.33, 0.67, 1, 1.5, 1.33, 0.75, 1.5];
    const list = make("ol", { class: "grid" });
    for (const aspect of shapes) {
      const made = make("li", { class: "tile skeleton" }, make("span", { class: "frame" }), make("span", { class: "caption" }));
      made.style.setProperty("--aspect", aspect);
      list.append(made);
    }
    list.setAttribute("aria-hidden", "true");
    place.append(list);
  }

  /** Say how far the server goes; what is shown by then may have reached it. */
  function limit(offset) {
    furthest = offset;
    if (!state || !cut()) return;
    bands.count(false);
    said();
  }

  return {
    show,
    more,
    open,
    clear,
    restore,
    limit,
    kept: () => state,
    end: () => state?.first.end ?? null,
    place: () => ({ count: state?.hits.length ?? 0, opened: Boolean(state?.opened) }),
    hits: () => (state ? shown() : []),
    hasMore: () => Boolean(state && further() && !hidden()),
  };
}

/** Whether it is said that nothing is like a picture, of which people want to see the nearest all the same. */
export const onlyNearest = (search, answer) => Boolean(answer.end?.nothing) && !search.q;

function page(search, offset, k, signal) {
  const asked = parametersOf(search);
  asked.set("k", Math.min(k, 500));
  if (offset) asked.set("offset", offset);
  if (search.q && !search.typed) asked.set("typed", "false");
  return ask("search", asked, { signal });
}
