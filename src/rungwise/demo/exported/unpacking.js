// An answer as the server of a demo would send it, from its packed form: words stand in a table, degrees as counts of facts.

export function answerOf(packed, words) {
  const degrees = (counts) => counts.map((count) => count / packed.facts);
  const hit = ([picture, held, band, ...wrong]) => ({
    picture,
    degree: held === null ? null : held / packed.facts,
    true: held,
    band: words[band],
    wrong: wrong.map((one) => words[one]),
  });
  return {
    ...packed,
    ideal: degrees(packed.ideal),
    columns: packed.columns.map((column) => ({ ...column, curve: degrees(column.curve), hits: column.hits.map(hit) })),
  };
}
