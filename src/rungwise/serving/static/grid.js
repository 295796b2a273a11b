// The pictures found: loads more as one scrolls, shows none twice, and can be put back as it was.

import { ask } from "./api.js";
import { parametersOf } from "./address.js";
import { element, make } from "./dom.js";
import { number } from "./facts.js";
import { announce, hush } from "./say.js";
import { tile } from "./tile.js";

const FIRST = 30;
const NEXT = 60;
const AHEAD = "800px"; // loaded before they are seen

/** @param on As for tiles. */
export function makeGrid(on) {
  const list = element("results");
  const end = element("end");
  let state = null; // of the search that is shown
  let furthest = Infinity; // the server's largest offset

  const watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(), { rootMargin: AHEAD });

  function add(answer) {
    const fresh = answer.hits.filter((hit) => !state.ids.has(hit.id));
    for (const hit of fresh) state.ids.add(hit.id);
    state.hits.push(...fresh);
    state.offset += answer.hits.length;
    state.cut = answer.more && state.offset > furthest;
    state.more = answer.more && !state.cut && answer.hits.length > 0;
    list.append(...fresh.map((hit) => tile(hit, answer.scale, on)));
  }

  function said() {
    const count = `${number(state.hits.length)} ${state.hits.length === 1 ? "picture" : "pictures"}`;
    announce(state.more ? `${count}; more follow further down` : count);
    if (state.cut) end.textContent = `These are the first ${count}. Say more of what you look for to see others.`;
    else end.textContent = state.more || !state.hits.length ? "" : `That is all: ${count}.`;
    // An observer only speaks when something comes into sight: looking anew makes it speak of what is in sight already.
    watcher.unobserve(end);
    if (state.more) watcher.observe(end);
  }

  /** Show a search; gives the first answer, or throws what went wrong. */
  async function show(search, count, signal) {
    clear();
    skeletons();
    list.setAttribute("aria-busy", "true");
    try {
      const answer = await page(search, 0, Math.max(FIRST, count), signal);
      clear();
      state = { search, first: answer, hits: [], ids: new Set(), offset: 0, more: false };
      add(answer);
      said();
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") clear();
      throw error;
    } finally {
      if (!signal.aborted) list.setAttribute("aria-busy", "false");
    }
  }

  /** Load the next pictures; those who ask while they are on their way get the same. */
  function more() {
    const mine = state;
    if (!mine?.more) return Promise.resolve();
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
    list.replaceChildren();
    end.textContent = "";
  }

  function restore(kept) {
    clear();
    state = kept;
    list.append(...kept.hits.map((hit) => tile(hit, kept.first.scale, on)));
    list.setAttribute("aria-busy", "false");
    said();
  }

  function skeletons() {
    const shapes = [1.5, 1, 0.75, 1.33, 1.5, 1.33, 0.67, 1, 1.5, 1.33, 0.75, 1.5];
    for (const aspect of shapes) {
      const made = make("li", { class: "tile skeleton" }, make("span", { class: "frame" }), make("span", { class: "caption" }));
      made.setAttribute("aria-hidden", "true");
      made.style.setProperty("--aspect", aspect);
      list.append(made);
    }
  }

  const limit = (offset) => (furthest = offset);
  return { show, more, clear, restore, limit, kept: () => state, hits: () => state?.hits ?? [], hasMore: () => Boolean(state?.more) };
}

function page(search, offset, k, signal) {
  const asked = parametersOf(search);
  asked.set("k", Math.min(k, 500));
  if (offset) asked.set("offset", offset);
  return ask("search", asked, { signal });
}
