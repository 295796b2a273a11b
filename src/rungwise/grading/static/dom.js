// Elements: finding, making, showing and hiding them.

import { element, make } from "../common/elements.js";

export { element, make };

/** Show some elements and hide others, by their ids. */
export function show(shown, hidden) {
  for (const id of shown) element(id).hidden = false;
  for (const id of hidden) element(id).hidden = true;
}

/** A list with a line for each text. */
export function list(id, texts) {
  element(id).replaceChildren(...texts.map((text) => make("li", { textContent: text, dir: "auto" })));
}

export const number = (count) => count.toLocaleString("en");

/** What screen readers say. */
export function announce(text) {
  element("announcer").textContent = text;
}
