// What people say of pictures: right, close or wrong for what was searched. It is kept at once, and pressed again taken back.
// Who gave a name sees the grades of that name alone.

import { ask } from "./api.js";
import { element, make, turnWithin } from "./dom.js";
import { number } from "./facts.js";
import { announce, toast } from "./say.js";

export const GRADES = ["right", "close", "wrong"];
const SAID = { right: "It fits", close: "It nearly fits", wrong: "It does not fit" };

/** @param on {learnt(), possible(now)}: the end of relevance was fitted anew; whether this search can be judged. */
export function makeGrades(on) {
  let allowed = null; // not known yet
  let learns = false; // whether whoever judges may also have the server learn from it
  let query = ""; // whose pictures are judged; empty where that is not possible
  let empty = false; // whether nothing fits
  let who = ""; // judges; empty for nobody in particular
  let given = new Map(); // that person's grades by id
  let underWay = 0; // grades that the server has not answered yet
  let groups = []; // {id, buttons} that are shown
  let waiting = []; // places for buttons until it is known whether there are any
  let total = { queries: 0, needed: Infinity };

  /** Whether this server takes grades, as /about says. */
  function offer(about) {
    allowed = about.gradable;
    learns = about.calibratable;
    const places = waiting;
    waiting = [];
    for (const [place, item, title] of places) put(place, item, title);
    begin();
  }

  /** Another search is shown. */
  function of(search) {
    query = search.pictures.length ? "" : search.q.trim();
    empty = false;
    given = new Map();
    groups = groups.filter(({ place }) => place.id === "detail-grades");
    waiting = [];
    element("judged").hidden = true;
    begin();
  }

  function begin() {
    if (allowed === null) return;
    on.possible(Boolean(allowed && query && !empty));
    if (allowed && query) load(query);
  }

  /** Nothing was found that could be judged, or something is shown after all. */
  function nothingFound(none) {
    empty = none;
    if (allowed !== null) on.possible(Boolean(allowed && query && !empty));
  }

  /** Somebody else judges. */
  function by(name) {
    who = name;
    given = new Map();
    press();
    begin();
  }

  async function load(mine) {
    const answer = await ask("grades", new URLSearchParams({ q: mine, k: 500 })).catch(() => null);
    if (answer && mine === query) took(answer);
  }

  function took(answer) {
    given = new Map(answer.grades.filter((one) => (one.who ?? "") === who).map(({ id, grade }) => [id, grade]));
    total = answer;
    press();
    count();
  }

  /** Put three buttons for a picture into a place of the page, if this server takes grades of this search. */
  function put(place, item, title) {
    if (allowed === null) waiting.push([place, item, title]);
    groups = groups.filter((group) => group.place !== place);
    place.replaceChildren();
    place.hidden = !allowed || !query;
    if (place.hidden) return;
    const buttons = GRADES.map((grade) => {
      const button = make("button", { type: "button", textContent: grade, title: SAID[grade], data: { grade } });
      button.onclick = () => give(item.id, given.get(item.id) === grade ? null : grade);
      return button;
    });
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `Does it fit? ${title}`);
    place.append(...buttons);
    place.onkeydown = (event) => turnWithin(event, buttons);
    groups.push({ place, id: item.id, buttons });
    press();
  }

  function press() {
    for (const { place, id, buttons } of groups) {
      const grade = given.get(id);
      place.classList.toggle("given", Boolean(grade));
      for (const button of buttons) {
        const pressed = button.dataset.grade === grade;
        button.setAttribute("aria-pressed", pressed);
        button.tabIndex = pressed || (!grade && button === buttons[0]) ? 0 : -1;
      }
    }
  }

  /** Keep a grade of a picture; null takes back what was said. */
  async function give(id, now) {
    const mine = query;
    const before = given.get(id);
    set(id, now);
    underWay++;
    try {
      const body = JSON.stringify({ query: mine, id, grade: now, who });
      const answer = await ask("grades", undefined, { method: "POST", body, headers: { "Content-Type": "application/json" } });
      underWay--;
      // An answer that others follow does not know of them yet.
      if (mine === query && !underWay) took(answer);
      announce(now ? `Kept: ${now}` : "Taken back");
    } catch (error) {
      underWay--;
      if (mine === query) set(id, before);
      toast(error.message);
    }
  }

  function set(id, grade) {
    if (grade) given.set(id, grade);
    else given.delete(id);
    press();
  }

  function count() {
    const { queries, needed } = total;
    element("judged").hidden = !queries;
    element("judged-count").textContent = `${number(queries)} ${queries === 1 ? "search" : "searches"} judged`;
    element("learn").hidden = !learns || queries < needed;
  }

  element("learn").onclick = async () => {
    element("learn").disabled = true;
    element("learnt").textContent = "Learning…";
    try {
      const { queries, changes, kept } = await ask("calibration", undefined, { method: "POST" });
      const first = kept ? [`Where relevance ends is now judged by ${number(queries)} searches.`] : [];
      element("learnt").textContent = [...first, ...changes].join(" ");
      if (kept) on.learnt();
    } catch (error) {
      element("learnt").textContent = error.message;
    } finally {
      element("learn").disabled = false;
    }
  };

  return { offer, of, put, by, give, nothingFound, has: (id) => given.has(id) };
}
