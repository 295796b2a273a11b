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

/** One of the drawings at the top of the page. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#draw-${name}`);
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** Arrow keys go from one of these buttons to the next, so that the tab key stops at one of them alone. */
export function turnWithin(event, buttons) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length].focus();
}

/** Whether a click wants a new tab or window, which is the browser's business. */
export const wantsNewTab = (event) => event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0;
