// Why this hit: the words of the query as buttons, and the picture with the regions that answered the chosen word.

import { ask } from "./api.js";
import { element, make, turnWithin } from "./dom.js";
import { announce } from "./say.js";

const SVG = "http://www.w3.org/2000/svg";
const DARKEST = 0.75; // how far regions fade that say nothing to a word
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const cosine = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function makeWhy() {
  const veil = element("why-veil");
  const shownLarge = element("detail-picture");
  let offered = false; // whether this server can say why
  let query = "";
  let wanted = false; // who asks of one picture is told of the next ones, too
  let item = null; // the picture that is shown
  let words = []; // {word, answer, share, where, regions, button}
  let boxes = [];
  let chosen = null;

  /** What the server can do, as /about says. */
  function offer(about) {
    offered = about.explains;
    if (item) show(item);
  }

  /** Another search is shown. */
  function of(search) {
    query = search.q.trim();
    if (!query) wanted = false;
  }

  /** Another picture is shown large. */
  function show(picture) {
    item = picture;
    clear();
    element("why").hidden = !offered || !query || !item.has_file;
    element("why-ask").hidden = wanted;
    if (wanted && !element("why").hidden) load();
  }

  function clear() {
    words = [];
    chosen = null;
    draw();
    element("why-words").replaceChildren();
    element("why-note").textContent = "";
  }

  async function load() {
    const mine = item;
    element("why-note").textContent = "Looking at the picture…";
    try {
      const answer = await ask("why", new URLSearchParams({ id: mine.id, q: query }));
      if (mine === item) took(answer);
    } catch (error) {
      if (mine !== item) return;
      element("why-note").textContent = error.message;
      element("why-ask").hidden = false;
    }
  }

  function took(answer) {
    boxes = answer.boxes;
    words = answer.texts.flatMap((text) => text.words);
    const most = Math.max(...words.map((one) => one.share));
    for (const one of words) {
      one.button = make("button", { type: "button", dir: "auto", textContent: one.word, title: said(one) });
      one.button.style.setProperty("--share", one.share / most);
      one.button.onclick = () => choose(one === chosen ? null : one);
    }
    const buttons = words.map((one) => one.button);
    element("why-words").onkeydown = (event) => turnWithin(event, buttons);
    element("why-words").replaceChildren(...buttons);
    choose(words.reduce((best, one) => (one.share > best.share ? one : best), words[0]) ?? null);
  }

  function choose(one) {
    chosen = one;
    for (const { button } of words) {
      button.setAttribute("aria-pressed", button === one?.button);
      button.tabIndex = one ? (button === one.button ? 0 : -1) : button === words[0].button ? 0 : -1;
    }
    element("why-note").textContent = one ? said(one) : "Choose a word to see which parts of the picture answered it.";
    announce(element("why-note").textContent);
    draw();
  }

  /** Where a word was found, how well, and how much it counts. */
  function said({ word, answer, share, where }) {
    const place = where ? `${where}, ` : "";
    return `“${word}”: ${place}cosine ${cosine.format(answer)}, ${percent.format(share)} of the score`;
  }

  /** Fade what said nothing to the chosen word. */
  function draw() {
    const [width, height] = [shownLarge.naturalWidth, shownLarge.naturalHeight];
    const shown = Boolean(chosen && boxes.length && width && !shownLarge.hidden);
    veil.toggleAttribute("hidden", !shown);
    if (!shown) return;
    veil.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const [least, most] = [Math.min(...chosen.regions), Math.max(...chosen.regions)];
    // From the weakest to the strongest, because attention of some models differs little between regions.
    const opacity = (weight) => (most > least ? (DARKEST * (most - weight)) / (most - least) : 0);
    const faded = boxes.map((box, region) => rectangle(box, width, height, opacity(chosen.regions[region])));
    veil.replaceChildren(outside(width, height), ...faded, strongest(width, height));
  }

  /** What the model did not see at all. */
  function outside(width, height) {
    const seen = boxes.filter(([left, top, right, bottom]) => right > left && bottom > top);
    const edge = (at, of) => of(...seen.map((box) => box[at]));
    const [left, top, right, bottom] = [edge(0, Math.min) * width, edge(1, Math.min) * height, edge(2, Math.max) * width, edge(3, Math.max) * height];
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M0 0H${width}V${height}H0ZM${left} ${top}V${bottom}H${right}V${top}Z`);
    path.setAttribute("fill-opacity", DARKEST);
    return path;
  }

  function strongest(width, height) {
    const box = boxes[chosen.regions.indexOf(Math.max(...chosen.regions))];
    const made = rectangle(box, width, height, 0);
    made.setAttribute("class", "best");
    return made;
  }

  function rectangle([left, top, right, bottom], width, height, opacity) {
    const made = document.createElementNS(SVG, "rect");
    const sizes = { x: left * width, y: top * height, width: (right - left) * width, height: (bottom - top) * height };
    for (const [name, value] of Object.entries(sizes)) made.setAttribute(name, value);
    made.setAttribute("fill-opacity", opacity);
    return made;
  }

  shownLarge.addEventListener("load", draw);
  element("why-ask").onclick = () => {
    wanted = true;
    element("why-ask").hidden = true;
    load().then(() => words.length && words.find((one) => one === chosen)?.button.focus());
  };

  function hide() {
    item = null;
    clear();
  }

  return { offer, of, show, hide };
}
