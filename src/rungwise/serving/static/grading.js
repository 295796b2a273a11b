// Grading mode: the grades stand at every picture that was found, and keys give them to one picture after the other.

import { GRADES } from "./grades.js";
import { element } from "./dom.js";

const NAME = "rungwise-grader"; // under which the browser keeps who grades
const BY = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** @param grades {by(name), give(id, grade), has(id)}: as of `makeGrades`. */
export function makeGrading(grades) {
  const mode = element("grading-mode");
  const name = element("grader");
  let on = false;
  let judged = false; // whether what is shown can be

  function turn(now) {
    on = now;
    mode.setAttribute("aria-pressed", on);
    show();
  }

  function show() {
    document.body.classList.toggle("grading", on && judged);
    element("grading-how").hidden = !(on && judged);
  }

  /** Whether what is shown can be judged. */
  function possible(now) {
    judged = now;
    element("grading").hidden = !now;
    show();
  }

  const tiles = () => [...document.querySelectorAll("#results .tile:not(.skeleton)")];
  const idOf = (tile) => tile.querySelector("a.open").dataset.id;
  const go = (tile) => tile?.querySelector("a.open").focus();

  addEventListener("keydown", (event) => {
    if (!on || !judged || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
    const all = tiles();
    const focused = all.indexOf(document.activeElement.closest("#results .tile"));
    const at = focused >= 0 ? focused : all.findIndex((tile) => !grades.has(idOf(tile)));
    if (at < 0) return;
    const grade = GRADES[Number(event.key) - 1];
    if (grade) {
      grades.give(idOf(all[at]), grade);
      go(all[at + 1] ?? all[at]);
    } else if (event.key === "0" || event.key === "Backspace") {
      grades.give(idOf(all[at]), null);
      go(all[at]);
    } else if (event.key in BY) {
      go(focused >= 0 ? all[at + BY[event.key]] : all[at]);
    } else return;
    event.preventDefault();
  });

  function kept() {
    try {
      return localStorage.getItem(NAME) ?? "";
    } catch {
      return ""; // a browser that keeps nothing
    }
  }

  mode.onclick = () => {
    turn(!on);
    element("menu").open = false;
    if (on) go(tiles().find((tile) => !grades.has(idOf(tile))) ?? tiles()[0]);
  };
  element("grading-ends").onclick = () => turn(false);
  name.onchange = () => {
    name.value = name.value.trim();
    try {
      localStorage.setItem(NAME, name.value);
    } catch {
      // It is asked for again next time.
    }
    grades.by(name.value);
  };
  /** Who has a token with a name grades under that name. */
  function offer({ who }) {
    name.closest("label").hidden = Boolean(who);
    if (who) grades.by(who);
  }

  name.value = kept();
  if (name.value) grades.by(name.value);
  return { offer, possible };
}
