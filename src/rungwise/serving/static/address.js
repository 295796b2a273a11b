// What is searched, as an object and as an address that can be shared.
//
// A search is {q, pictures: [{kind: "like" | "picture", id, weight}], where, fold, diversity, words}; `by` says with what
// the start page begins, `show` which picture is shown large. The address and the server's /search take the same names.

const OPTIONS = ["fold", "diversity", "words"];

export function searchOf(text) {
  const asked = new URLSearchParams(text);
  const weights = (name) => asked.getAll(name).map((weight) => Number(weight) || 1);
  const of = (kind, name, of = weights(`${name}_weight`)) =>
    asked.getAll(name).map((id, place) => ({ kind, id, weight: of[place] ?? 1 }));
  const unlike = asked.getAll("unlike").map((id) => ({ kind: "like", id, weight: -1 }));
  const search = { q: asked.get("q") ?? "", pictures: [...of("like", "like"), ...unlike, ...of("picture", "picture")] };
  for (const name of ["where", "by", "show", ...OPTIONS]) search[name] = asked.get(name) ?? "";
  return search;
}

/** What the server is asked with. */
export function parametersOf(search) {
  const asked = new URLSearchParams();
  if (search.q) asked.set("q", search.q);
  const like = search.pictures.filter((term) => term.kind === "like");
  if (like.every((term) => Math.abs(term.weight) === 1)) {
    for (const { id, weight } of like) asked.append(weight > 0 ? "like" : "unlike", id);
  } else weighted(asked, "like", like);
  const given = search.pictures.filter((term) => term.kind === "picture");
  weighted(asked, "picture", given);
  for (const name of ["where", ...OPTIONS]) if (search[name]) asked.set(name, search[name]);
  return asked;
}

function weighted(asked, name, terms) {
  const plain = terms.every((term) => term.weight === 1);
  for (const { id, weight } of terms) {
    asked.append(name, id);
    if (!plain) asked.append(`${name}_weight`, weight);
  }
}

export function addressOf(search) {
  const asked = parametersOf(search);
  for (const name of ["by", "show"]) if (search[name]) asked.set(name, search[name]);
  return asked.size ? `?${asked}` : location.pathname;
}

export const nothing = () => searchOf("");

/** Whether a search asks for anything; the start page does not. */
export const asksForSomething = (search) => Boolean(search.q || search.pictures.length || search.where);

/** Whether two searches have the same answer, whichever picture is shown large. */
export const sameAnswer = (one, other) =>
  parametersOf(one).toString() === parametersOf(other).toString() && one.by === other.by;
