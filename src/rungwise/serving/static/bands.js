// Pictures in bands by how well they fit, the line where relevance ends, and the rest, folded behind a button.

import { make } from "./dom.js";
import { number } from "./facts.js";

const NAMES = {
  // where people or a relevance source judged
  exactly: "Exactly", close: "Close", "loosely related": "Loosely related",
  // where nothing was judged
  best: "Best matches", good: "Good matches", further: "Further matches",
};
const BEYOND = 4; // the rung of what is after the end

/** Whether a hit stands after the end of relevance. */
export const isBeyond = (hit) => hit.rung === BEYOND;

/**
 * @param place The element that holds all of it.
 * @param draw Gives the tile of a hit.
 */
export function makeBands(place, draw) {
  let bands = new Map(); // by name: {section, list, count, hits}
  let limit = null;

  function clear() {
    bands = new Map();
    limit = null;
    place.replaceChildren();
  }

  function bandOf(name, heading) {
    if (bands.has(name)) return bands.get(name);
    const list = make("ol", { class: "grid" });
    const count = make("span", { class: "count" });
    const section = make("section", { class: "band", data: { band: name } });
    if (heading) {
      const title = make("h2", {}, make("span", { class: "steps", aria: { hidden: "true" } }), heading, " ", count);
      title.id = `band-${bands.size}`;
      section.setAttribute("aria-labelledby", title.id);
      section.append(title);
    }
    section.append(list);
    list.setAttribute("aria-label", heading ? `Pictures, ${heading.toLowerCase()}` : "Pictures found");
    place.append(section);
    const made = { section, list, count, hits: 0 };
    bands.set(name, made);
    return made;
  }

  /** Add hits; those after the end go under a heading of their own. */
  function add(hits, headingBeyond) {
    for (const hit of hits) {
      const beyond = isBeyond(hit);
      const band = bandOf(beyond ? "beyond" : hit.band, beyond ? headingBeyond : NAMES[hit.band]);
      band.list.append(draw(hit));
      band.hits++;
    }
  }

  /** Say how many there are of each; the last band may go on. */
  function count(goesOn) {
    const last = [...bands.keys()].pop();
    for (const [name, { count, hits }] of bands) count.textContent = number(hits) + (goesOn && name === last ? "+" : "");
  }

  /** The line where relevance ends, with a button for what follows. */
  function drawLimit(label, open) {
    limit?.remove();
    const button = make("button", { type: "button", class: "soft", textContent: label, onclick: open });
    limit = make("div", { class: "limit" }, make("h2", { textContent: "Relevance ends here" }), button);
    place.append(limit);
  }

  /** The same line once what follows is shown, with a button to fold it again. */
  function drawPassed(close) {
    if (limit) limit.querySelector("button").replaceWith(make("button", { type: "button", class: "soft", textContent: "Hide the less related", onclick: close }));
  }

  /** Take away what is after the end. */
  function fold() {
    bands.get("beyond")?.section.remove();
    bands.delete("beyond");
  }

  return { clear, add, count, drawLimit, drawPassed, fold, first: () => bands.get("beyond")?.section.querySelector("a.open") };
}
