// What is said beside the pairs: how far one is, how well graders agree, what was left out, and what to do in the end.

import { element, list, make, number, show } from "./dom.js";

const pairs = (count) => `${number(count)} ${count === 1 ? "pair" : "pairs"}`;

export function describe(about) {
  element("how-many").textContent = number(about.pairs);
  element("next").textContent = about.next;
  for (const id of ["out", "kept-in"]) element(id).textContent = about.out;
  element("left-out").hidden = !about.left_out_count;
  element("left-out-title").textContent = `${number(about.left_out_count)} left out`;
  const more = about.left_out_count - about.left_out.length;
  list("left-out-list", more ? [...about.left_out, `and ${number(more)} more`] : about.left_out);
}

/** How far a grader is, and how well graders agree once this one has graded everything. */
export function tell(progress) {
  const total = progress.given.length;
  const done = progress.given.filter((grade) => grade !== null).length;
  element("bar").max = total;
  element("bar").value = done;
  element("count").textContent = `${number(done)} of ${number(total)}`;
  // Before, it would tell with each grade whether others gave the same.
  element("agreement").hidden = done < total || !progress.agreement.shared;
  list("agreement-list", progress.summary);
  return done;
}

/** The end: nothing is left to grade but what was skipped. */
export function finish(about, progress, skipped) {
  const done = tell(progress);
  element("done-title").textContent = skipped ? `${pairs(done)} graded, ${number(skipped)} skipped` : `All ${pairs(done)} graded`;
  element("done-note").textContent = skipped ? "Skipped pairs count for nothing until they are graded." : "Thank you. Every grade is kept.";
  element("skipped").hidden = !skipped;
  element("skipped").textContent = skipped === 1 ? "Grade the skipped one" : "Grade the skipped ones";
  element("undo-last").hidden = !progress.history.length;
  element("counts").replaceChildren(
    ...about.grades.flatMap(([grade, meaning]) => [
      make("dt", { textContent: `${grade} ${meaning}` }),
      make("dd", { textContent: number(progress.counts[grade]) }),
    ]),
  );
  show(["done", "far"], ["pair", "name-form"]);
  element("done-title").focus();
}
