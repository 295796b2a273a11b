// Elements: finding and making them.

export { element, make } from "../common/elements.js";

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
