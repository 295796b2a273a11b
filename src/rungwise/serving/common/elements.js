// Elements: finding and making them.

export const element = (id) => document.getElementById(id);

/** An element with properties (`class`, `data`, `aria` and attributes too) and children. */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") made.className = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "aria") for (const [key, text] of Object.entries(value)) made.setAttribute(`aria-${key}`, text);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
