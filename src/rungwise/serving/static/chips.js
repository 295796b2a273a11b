// The row under the box: a chip for each term and each filter, and buttons that add some.

import { thumbAddress, uploadAddress } from "./api.js";
import { element, icon, make } from "./dom.js";
import { short } from "./facts.js";
import { isLess, LESS, withTerms } from "./terms.js";
import { joined, partsOf, partText } from "./where.js";

const WEIGHTS = [0.5, 1, 2, 3];

/** @param on {open(search), choosePicture(), openFilters()} */
export function makeChips(on) {
  let search = null;
  let terms = [];
  let pictured = false; // whether pictures of the index have files
  let adding = 1; // the weight of what is being added

  /** Show what a search is made of: its terms as the server has read them, and whether there are files of its pictures. */
  function show(asked, read, hasFiles) {
    [search, terms, pictured] = [asked, read, hasFiles];
    const single = terms.length === 1 && terms[0].kind === "words" && terms[0].weight === 1;
    const chips = single ? [] : terms.map(termChip);
    element("chips").replaceChildren(...chips, ...partsOf(search.where).map(filterChip), ...(search.favourites ? [favouritesChip()] : []));
    element("chips").hidden = !element("chips").children.length;
    element("query-row").hidden = false;
    closeAdder();
  }

  const hide = () => (element("query-row").hidden = true);

  function change(place, changed) {
    const next = terms.flatMap((term, at) => (at === place ? (changed ? [{ ...term, ...changed }] : []) : [term]));
    on.open(withTerms(search, next));
  }

  function termChip(term, place) {
    const words = term.kind === "words";
    const name = words ? term.text : "this picture";
    const less = isLess(term);
    const chip = make("li", { class: less ? "chip less" : "chip" });
    const turn = make("button", { type: "button", class: "sign", title: less ? "Without; press for with" : "With; press for without" });
    turn.append(icon(less ? "minus" : "plus"));
    turn.setAttribute("aria-label", `${less ? "Without" : "With"} ${short(name, 60)}; change`);
    turn.onclick = () => change(place, { weight: less ? 1 : LESS });
    chip.append(turn, shown(term), ...(term.weight === LESS ? [] : [weight(term, place, name)]), remover(`Remove ${short(name, 60)}`, () => change(place, null)));
    return chip;
  }

  function shown(term) {
    const text = { words: term.text, like: term.id, picture: "your picture" }[term.kind];
    if (term.kind === "words" || !pictured) return make("span", { class: "chip-text", dir: "auto", textContent: text });
    const src = term.kind === "like" ? thumbAddress(term.id, 320) : uploadAddress(term.picture);
    return make("img", { src, alt: isLess(term) ? "Less like this picture" : "Like this picture" });
  }

  function weight(term, place, name) {
    const size = Math.abs(term.weight);
    const choices = WEIGHTS.includes(size) ? WEIGHTS : [...WEIGHTS, size].sort((one, other) => one - other);
    const choice = make("select", { class: size === 1 ? "weight plain" : "weight", title: "How much it counts" });
    choice.setAttribute("aria-label", `How much ${short(name, 60)} counts`);
    choice.append(...choices.map((value) => make("option", { value, textContent: `×${value}`, selected: value === size })));
    choice.onchange = () => change(place, { weight: Math.sign(term.weight) * Number(choice.value) });
    return choice;
  }

  function filterChip(part, place, parts) {
    const text = make("button", { type: "button", class: "chip-text", dir: "auto", title: part, textContent: short(partText(part), 80) });
    text.onclick = on.openFilters;
    const drop = () => on.open({ ...search, where: joined(parts.filter((_, at) => at !== place)), show: "" });
    return make("li", { class: "chip filter" }, icon("funnel"), text, remover(`Remove filter ${partText(part)}`, drop));
  }

  function favouritesChip() {
    const drop = () => on.open({ ...search, favourites: "", show: "" });
    return make("li", { class: "chip filter" }, icon("heart"), make("span", { class: "chip-text", textContent: "favourites only" }), remover("Remove favourites only", drop));
  }

  function remover(label, act) {
    return make("button", { type: "button", class: "remove", aria: { label }, onclick: act }, icon("cross"));
  }

  function openAdder(weight) {
    adding = weight;
    const less = weight === LESS;
    element("adding-sign").textContent = less ? "−" : "+";
    element("adding").placeholder = less ? "without…" : "with…";
    element("adding").setAttribute("aria-label", less ? "Words to leave out" : "Words to add");
    element("adding").value = "";
    element("adder").hidden = false;
    element("adding").focus();
  }

  const closeAdder = () => (element("adder").hidden = true);

  element("add-with").onclick = () => openAdder(1);
  element("add-without").onclick = () => openAdder(LESS);
  element("add-picture").onclick = on.choosePicture;
  element("add-filter").onclick = on.openFilters;
  element("adding").onkeydown = (event) => {
    if (event.key !== "Escape") return;
    closeAdder();
    element(adding === LESS ? "add-without" : "add-with").focus();
  };
  element("adding").onblur = () => element("adding").value.trim() || closeAdder();
  element("adder").onsubmit = (event) => {
    event.preventDefault();
    const text = element("adding").value.trim();
    if (text) on.open({ ...withTerms(search, [...terms, { kind: "words", text, weight: adding }]), typed: true });
  };

  return { show, hide };
}
