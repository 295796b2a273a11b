// What the page says: to screen readers, in a line above the pictures, and for a moment at the bottom.

import { element, make } from "./dom.js";

export function announce(text) {
  element("announcer").textContent = text;
}

/** Show what went wrong, with a button for what can be done about it. */
export function complain(text, label, act) {
  const message = element("message");
  message.replaceChildren(make("span", { textContent: text, dir: "auto" }));
  if (act) message.append(make("button", { type: "button", class: "soft", textContent: label, onclick: act }));
  message.hidden = false;
}

export function hush() {
  element("message").hidden = true;
}

let fading;
export function toast(text) {
  // A modal dialog hides what is outside of it.
  (document.querySelector("dialog[open]") ?? document.body).append(element("toast"));
  element("toast").textContent = text;
  element("toast").hidden = false;
  announce(text);
  clearTimeout(fading);
  fading = setTimeout(() => (element("toast").hidden = true), 2500);
}

/** Put a text on the clipboard, also where the page is not served in secret and has no clipboard of its own. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { value: text, class: "unseen", aria: { hidden: "true" } });
    const before = document.activeElement;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus();
    if (!done) return toast("The browser does not let this page copy");
  }
  toast(`${what} copied`);
}
