// What is searched, as an object and as an address that can be shared.
//
// A search is {q, pictures: [{kind: "like" | "picture", id, weight}], where, fold, diversity, words, end, favourites}; `by` says with what
// the start page begins, `show` which picture is shown large,
// `typed` that the words were typed just now. The address and the server's /search take the same names.

import { LESS } from "./terms.js";

const LESS_OF_SENT = -0.5; // a picture that was sent has no "unlike"
const OPTIONS = ["fold", "diversity", "words", "end", "favourites"];

export function searchOf(text) {
  const asked = new URLSearchParams(text);
  const terms = (kind) => {
    const weights = asked.getAll(`${kind}_weight`).map((weight) => Number(weight) || 1);
    return asked.getAll(kind).map((id, place) => ({ kind, id, weight: weights[place] ?? 1 }));
  };
  const unlike = asked.getAll("unlike").map((id) => ({ kind: "like", id, weight: LESS }));
  const search = { q: asked.get("q") ?? "", pictures: [...terms("like"), ...unlike, ...terms("picture")] };
  for (const name of ["where", "by", "show", ...OPTIONS]) search[name] = asked.get(name) ?? "";
  return search;
}

/** What the server is asked with. */
export function parametersOf(search) {
  const asked = new URLSearchParams();
  if (search.q) asked.set("q", search.q);
  for (const kind of ["like", "picture"]) {
    const terms = search.pictures.filter((term) => term.kind === kind && !(kind === "like" && term.weight === LESS));
    const plain = terms.every((term) => term.weight === 1);
    for (const { id, weight } of terms) {
      asked.append(kind, id);
      if (!plain) asked.append(`${kind}_weight`, weight === LESS ? LESS_OF_SENT : weight);
    }
  }
  for (const term of search.pictures) if (term.kind === "like" && term.weight === LESS) asked.append("unlike", term.id);
  for (const name of ["where", ...OPTIONS]) if (search[name]) asked.set(name, search[name]);
  return asked;
}

export function addressOf(search) {
  const asked = parametersOf(search);
  for (const name of ["by", "show"]) if (search[name]) asked.set(name, search[name]);
  return asked.size ? `?${asked}` : location.pathname;
}

export const nothing = () => searchOf("");

/** Whether a search asks for anything; the start page does not. */
export const asksForSomething = (search) => Boolean(search.q || search.pictures.length || search.where || search.favourites);

/** Whether two searches have the same answer, whichever picture is shown large. */
export const sameAnswer = (one, other) =>
  parametersOf(one).toString() === parametersOf(other).toString() && one.by === other.by;
