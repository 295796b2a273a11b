// Elements: finding, making, showing and hiding them.

export const element = (id) => document.getElementById(id);

/** An element with properties (`class` too) and children. */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

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
