// The text of a query, made of its terms as the server reads them: `"beach" - 2*"people"`.

/** A weight that says "less of this, as much as the server finds right". */
export const LESS = "less";

export const isLess = ({ weight }) => weight === LESS || weight < 0;

// Where the server could see a sign, a weight, a quotation or a "not", a text stands in quotes.
const SIGNS = /["“”„«»‹›「」『』＂*×:]|(^|\s)['‘‚+＋\-−－]|\b(no|not|without)\b/iu;
const QUOTES = ['""', "“”", "«»", "「」", "『』"];

/** The text in quotes that it does not hold itself. */
function quoted(text) {
  const [open, close] = QUOTES.find((marks) => !text.includes(marks[1])) ?? QUOTES[0];
  return `${open}${text}${close}`;
}

/** The text that stands for terms of words: plain where one text is all. */
export function textOf(terms) {
  if (terms.length === 1 && terms[0].weight === 1 && !SIGNS.test(terms[0].text)) return terms[0].text;
  return terms
    .map((term, place) => {
      const size = term.weight === LESS ? 1 : Math.abs(term.weight);
      // A weight behind "-" is taken as it stands: without one the server chooses it.
      const number = term.weight === LESS || (size === 1 && !isLess(term)) ? "" : `${size}*`;
      return `${isLess(term) ? "- " : place ? "+ " : ""}${number}${quoted(term.text)}`;
    })
    .join(" ");
}

/** The search with other terms: those of words make its text, the others its pictures. */
export function withTerms(search, terms) {
  const pictures = terms.filter((term) => term.kind !== "words");
  return {
    ...search,
    q: textOf(terms.filter((term) => term.kind === "words")),
    pictures: pictures.map(({ kind, id, picture, weight }) => ({ kind, id: kind === "like" ? id : picture, weight })),
    show: "",
    by: "",
  };
}
