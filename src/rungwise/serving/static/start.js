// The start page: what is here, examples that find something, and pictures to look at.

import { ask } from "./api.js";
import { nothing } from "./address.js";
import { element, make, wantsNewTab } from "./dom.js";
import { counted, heading, number } from "./facts.js";
import { toast } from "./say.js";
import { tile } from "./tile.js";

const GROUPS = 8;
const OF_EACH = 12;
const AT_RANDOM = 48;
const LOOKING = 100; // pixels: whoever has scrolled so far looks at what is there
const AGAIN = 1500; // milliseconds until themes that are still being computed are asked for again

// Fingers drop nothing: a phone is offered a button that chooses a picture, or takes one.
const HOW = matchMedia("(hover: hover) and (pointer: fine)").matches ? "Write a few words, or drop a picture anywhere on this page." : "Write a few words, or search with a picture.";

const days = ({ queries_kept_days: count }) => (count === 1 ? "1 day" : `${number(count)} days`);

/** @param on As for tiles, and {search(search), address(search)}. */
export function makeStart(on) {
  let timer;

  function describe(about) {
    const parts = [`${number(about.pictures)} ${about.pictures === 1 ? "picture" : "pictures"} in ${about.name}`];
    element("start-note").textContent = `${parts[0]}. ${HOW}`;
    element("examples").replaceChildren(
      ...about.examples.map((text) => {
        const button = make("button", { type: "button", class: "soft", dir: "auto", textContent: heading(text, 60), title: text });
        button.onclick = () => on.search({ ...nothing(), q: text });
        return make("li", {}, button);
      }),
    );
    sayWhatIsKept(about);
    if (about.captions) parts.push(`${number(about.captions)} captions`);
    if (about.skipped) parts.push(`${number(about.skipped)} unreadable files left out`);
    parts.push(`model ${about.model}`, `rungwise ${about.version}`);
    if (about.queries_kept_days) parts.push(`words that are searched for are kept for ${days(about)}`);
    // Visitors can do nothing about it.
    if (about.problem && (about.writable || about.only_here)) parts.push(`for whoever runs this server: ${about.problem}`);
    element("about").textContent = parts.join(" · ");
  }

  function sayWhatIsKept(about) {
    element("kept-queries").hidden = !about.queries_kept_days;
    if (!about.queries_kept_days) return;
    element("kept-queries-note").textContent =
      `The words that you search for are kept beside this collection (in queries.jsonl), with how often and the day, and without who asked. ` +
      `They are used to judge better where relevance ends, and go ${days(about)} after they were last asked.`;
    const button = element("forget-queries");
    button.hidden = Boolean(about.not_kept) || !about.calibratable;
    button.onclick = async () => {
      button.disabled = true;
      try {
        const { forgotten } = await ask("queries", undefined, { method: "DELETE" });
        toast(forgotten === 1 ? "1 kept query was deleted." : `${number(forgotten)} kept queries were deleted.`);
      } catch (error) {
        toast(error.message);
      } finally {
        button.disabled = false;
      }
    };
  }

  function head(by) {
    clearTimeout(timer);
    element("start").hidden = false;
    element("groups").replaceChildren();
    for (const link of element("start").querySelectorAll("nav a")) {
      if (link.dataset.by === by) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      link.onclick = (event) => {
        if (wantsNewTab(event)) return;
        event.preventDefault();
        on.search(link.dataset.by === "favourites" ? { ...nothing(), favourites: "true" } : { ...nothing(), by: link.dataset.by });
      };
    }
  }

  /** Show a sample; gives what was shown, so that it can be put back. */
  async function show(by, signal) {
    head(by);
    const asked = new URLSearchParams(by === "random" ? { by, k: 1, of: AT_RANDOM } : { by, k: GROUPS, of: OF_EACH });
    const sample = await ask("sample", asked, { signal });
    draw(sample);
    if (!sample.ready) timer = setTimeout(() => improve(sample, asked, signal), AGAIN);
    return sample;
  }

  /** Put the themes in the place of other pictures once they are there, unless somebody looks at those by then. */
  async function improve(sample, asked, signal) {
    const later = await ask("sample", asked, { signal }).catch(() => null);
    if (signal.aborted || !later || scrollY > LOOKING || document.querySelector("dialog[open]")) return;
    if (!later.ready) timer = setTimeout(() => improve(sample, asked, signal), AGAIN);
    else draw(Object.assign(sample, later));
  }

  function restore(by, sample) {
    head(by);
    draw(sample);
  }

  function draw(sample) {
    element("groups").replaceChildren(...sample.groups.filter((group) => group.items.length).map((group) => groupOf(group, sample)));
  }

  function groupOf(group, { by, ready }) {
    const label = by === "clusters" && ready ? group.label : "";
    const search = group.query
      ? { ...nothing(), q: group.query }
      : { ...nothing(), pictures: [{ kind: "like", id: group.items[0].id, weight: 1 }] };
    const pictures = make("ol", { class: label ? "grid row" : "grid" }, ...group.items.map((item) => tile(item, [0, 1], on)));
    const made = make("section", { class: "group" });
    if (label) {
      const title = make("a", { href: on.address(search), dir: "auto", textContent: heading(label, 80) });
      title.onclick = (event) => {
        if (wantsNewTab(event)) return;
        event.preventDefault();
        on.search(search);
      };
      const size = `${counted(group.size, group.about)} ${group.size === 1 ? "picture" : "pictures"} like these`;
      made.append(make("h2", {}, title, make("small", { class: "quiet", textContent: size })));
    }
    pictures.setAttribute("aria-label", label || "Pictures");
    made.append(pictures);
    return made;
  }

  const hide = () => {
    clearTimeout(timer);
    element("start").hidden = true;
  };

  return { describe, show, restore, hide, head, items: (sample) => sample.groups.flatMap((group) => group.items) };
}
