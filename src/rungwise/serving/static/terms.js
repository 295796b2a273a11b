// The text of a query, made of its terms as the server reads them: `"beach" - 2*"people"`.

// What a plain text may not hold, since the server could take it for a sign, a weight or a quotation.
const SIGNS = /["“”„«»*×]|(^|\s)[+\-−]|\b(not|without|except)\b/iu;

const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

/** The text that stands for terms of words: plain where one text is all. */
export function textOf(terms) {
  if (terms.length === 1 && terms[0].weight === 1 && !SIGNS.test(terms[0].text)) return terms[0].text;
  return terms
    .map(({ text, weight }, place) => {
      const sign = weight < 0 ? "- " : place ? "+ " : "";
      const size = Math.abs(weight);
      return `${sign}${size === 1 ? "" : `${size}*`}${quoted(text)}`;
    })
    .join(" ");
}

/** The search with other terms: those of words make its text, the others its pictures. */
export function withTerms(search, terms) {
  return {
    ...search,
    q: textOf(terms.filter((term) => term.kind === "words")),
    pictures: terms.filter((term) => term.kind !== "words").map(({ kind, id, picture, weight }) => ({ kind, id: id ?? picture, weight })),
    show: "",
    by: "",
  };
}
