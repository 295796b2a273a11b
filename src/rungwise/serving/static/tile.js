// One picture of a grid: a link to its large view, what it is called, and buttons for more or less like it.

import { thumbAddress } from "./api.js";
import { icon, make, wantsNewTab } from "./dom.js";
import { aspectOf, short, titleOf } from "./facts.js";
import { LESS } from "./terms.js";

const SIDES = [320, 640];
const ROW = 190; // pixels, about as high as a row is

/**
 * @param item A picture as the server describes it; a hit may have a score and folded ids.
 * @param scale Scores that a bar shows as empty and as full.
 * @param on {open(item), like(item, weight), href(item), grade(place, item, title)}: `grade` where pictures can be judged.
 */
export function tile(item, scale, on) {
  const title = short(titleOf(item));
  const aspect = aspectOf(item.columns);
  const frame = make("span", { class: "frame" });
  const link = make("a", { class: "open", href: on.href(item), data: { id: item.id } }, frame);
  const caption = make("span", { class: item.captions.length ? "caption" : "caption id", dir: "auto", textContent: title });
  link.append(caption);
  link.onclick = (event) => {
    if (wantsNewTab(event)) return;
    event.preventDefault();
    on.open(item);
  };
  frame.append(item.has_file ? thumbnail(item, aspect, frame) : withoutFile(item));
  const made = make("li", { class: "tile" }, link, buttons(item, title, on));
  made.style.setProperty("--aspect", aspect.toFixed(4));
  if (item.folded?.length) made.append(folded(item, on));
  // Where bands say how well pictures fit, a number says no more.
  if (typeof item.score === "number" && typeof item.rung !== "number") link.append(scoreOf(item.score, scale));
  if (on.grade) {
    const place = make("span", { class: "grades", hidden: true });
    made.append(make("span", { class: "at-foot" }, place));
    on.grade(place, item, title);
  }
  return made;
}

function thumbnail(item, aspect, frame) {
  const width = (side) => Math.round(aspect >= 1 ? side : side * aspect);
  const picture = make("img", { alt: "", loading: "lazy", decoding: "async" });
  picture.sizes = `${Math.round(1.2 * ROW * aspect)}px`;
  picture.srcset = SIDES.map((side) => `${thumbAddress(item.id, side, item.columns.hash)} ${width(side)}w`).join(", ");
  picture.src = thumbAddress(item.id, SIDES[0], item.columns.hash);
  picture.onerror = () => frame.replaceChildren(make("span", { class: "gone", textContent: "Cannot be shown" }));
  picture.onload = () => {
    // Where the shape was not known or is extreme, cutting off could cut off what was searched for.
    const shape = picture.naturalWidth / picture.naturalHeight;
    picture.classList.toggle("whole", shape / aspect > 1.2 || aspect / shape > 1.2);
    picture.classList.add("here");
  };
  return picture;
}

const withoutFile = (item) =>
  make("span", { class: "gone words", dir: "auto", textContent: short([...item.captions, item.id].join("\n"), 300) });

function buttons(item, title, on) {
  const more = make("button", { type: "button", class: "tool", title: "More like this" }, icon("alike"));
  const less = make("button", { type: "button", class: "tool less", title: "Less like this" }, icon("minus"));
  more.setAttribute("aria-label", `More like this: ${title}`);
  less.setAttribute("aria-label", `Less like this: ${title}`);
  more.onclick = () => on.like(item, 1);
  less.onclick = () => on.like(item, LESS);
  return make("span", { class: "over" }, less, more);
}

function folded(item, on) {
  const count = item.folded.length + 1;
  const badge = make("button", { type: "button", class: "folded", textContent: `${count} alike` });
  badge.setAttribute("aria-label", `${count} pictures that are nearly the same`);
  badge.onclick = () => on.open(item);
  return badge;
}

function scoreOf(score, [empty, full]) {
  const share = full > empty ? (score - empty) / (full - empty) : 1;
  const bar = make("span", { class: "bar" }, make("span"));
  bar.setAttribute("aria-hidden", "true");
  bar.firstChild.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  const text = make("span", { class: "score", title: "How alike the model finds them", textContent: score.toFixed(3) });
  return make("span", { class: "match" }, bar, text);
}
