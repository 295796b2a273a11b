// What is searched with, where that is one picture: shown large above those found, with captions that fit it.

import { ask, itemAddress, thumbAddress, uploadAddress } from "./api.js";
import { element, make } from "./dom.js";
import { short, titleOf } from "./facts.js";

const CAPTIONS = 6;

/** @param on {text(text), item(id), href(id)} */
export function makeSource(on) {
  let asked = null;

  function hide() {
    asked = null;
    element("source").hidden = true;
  }

  /** A picture that is on its way to the server. */
  function preview(address, name) {
    asked = null;
    element("source-link").removeAttribute("href");
    put(address, "Looking at your picture…", name ?? "");
    element("fitting").hidden = true;
  }

  function show(term) {
    const key = `${term.kind} ${term.id}`;
    if (asked?.key === key && !element("source").hidden) return;
    asked = { key };
    if (term.kind === "like") ofIndex(term.id, asked);
    else given(term.id);
    element("fitting").hidden = true;
    fitting(term, asked);
  }

  function put(address, title, note) {
    const picture = element("source-picture");
    picture.hidden = !address;
    picture.onerror = () => (picture.hidden = true);
    if (address) picture.src = address;
    element("source-title").textContent = title;
    element("source-note").textContent = note;
    element("source").hidden = false;
  }

  function given(id) {
    element("source-link").removeAttribute("href");
    put(uploadAddress(id), "More like your picture", "");
  }

  async function ofIndex(id, mine) {
    put("", "More like this picture", "");
    const link = element("source-link");
    link.href = on.href(id);
    link.setAttribute("aria-label", "Show the picture large");
    link.onclick = (event) => {
      event.preventDefault();
      on.item(id);
    };
    const item = await ask(itemAddress(id)).catch(() => null); // the search itself says what is wrong
    if (mine !== asked || !item) return;
    put(item.has_file ? thumbAddress(id, 640, item.columns.hash) : "", "More like this picture", short(titleOf(item), 300));
  }

  async function fitting(term, mine) {
    const name = term.kind === "like" ? "id" : "picture";
    const answer = await ask("captions", new URLSearchParams({ [name]: term.id, k: CAPTIONS })).catch(() => null);
    if (mine !== asked || !answer?.captions.length) return;
    element("fitting-list").replaceChildren(
      ...answer.captions.map(({ text }) => {
        const button = make("button", { type: "button", dir: "auto", textContent: short(text, 200), title: "Search for this" });
        button.onclick = () => on.text(text);
        return make("li", {}, button);
      }),
    );
    element("fitting").hidden = false;
  }

  return { show, preview, hide };
}
