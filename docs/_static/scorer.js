// Hits of a search of the site: pages for people who begin stand before the reference.
const BEFORE = { start: 14, howto: 10, guide: 5, explanation: 3, operate: 3 };
var Scorer = {
  score: ([page, , , , score]) => score + (BEFORE[page.split("/")[0]] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
