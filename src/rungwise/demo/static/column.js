// One model's answer: its numbers for this query, its curve, and its pictures in bands down to the end of relevance.

import { curve } from './curve.js';
import { element, step } from './dom.js';

const NUMBERS = [['nDCG@10', 0, ''], ['CS@100', 2, ''], ['CutF1', 0, '']];
// Where one of the models shows fewer, the next ones of both are in sight as well.
const SHORT = 6;
const BANDS = ['exactly', 'close', 'loosely related'];

export function columnOf(column, answer, picture) {
  const other = answer.columns.find((one) => one.name !== column.name);
  const shown = column.hits.slice(0, Math.min(column.shown, column.hits.length));
  const rest = column.hits.slice(column.shown);
  const understood = answer.facts > 0;
  const tile = (hit) => tileOf(hit, column, answer, picture);
  return element('section', { class: 'column', 'aria-labelledby': `title-${column.name}` },
    element('h2', { id: `title-${column.name}` }, column.title),
    understood ? numbers(column, other, answer.chance_measures) : null,
    understood ? curve(column, answer.ideal, answer.chance) : null,
    element('p', { class: 'verdict' }, verdict(column, answer)),
    ...BANDS.flatMap((band) => bandOf(band, shown.filter((hit) => hit.band === band), tile)),
    ...ending(column, other, rest, tile),
  );
}

function numbers(column, other, chance) {
  const cell = ([name, digits]) => {
    const value = column.measures[name];
    const better = value > other.measures[name];
    return element('div', { class: better ? 'better' : null }, element('dt', {}, name),
      element('dd', {}, element('b', {}, value.toFixed(digits)), element('small', {}, ` chance ${chance[name].toFixed(digits)}`)));
  };
  return element('dl', { class: 'numbers' }, ...NUMBERS.map(cell));
}

function verdict(column, answer) {
  if (!answer.facts) return column.shown ? `Shows ${count(column.shown)}.` : 'Shows none.';
  const first = column.first_right === null ? '' : ` First of which all is true: rank ${column.first_right}.`;
  if (!column.shown) return `Shows none; ${answer.relevant || 'none'} would be relevant.`;
  const relevant = answer.relevant ? ` with ${column.relevant_shown} of the ${answer.relevant} relevant ones.` : ' none of them relevant.';
  return `Shows ${count(column.shown)}${answer.relevant ? '' : ','}${relevant}${first}`;
}

function bandOf(band, hits, tile) {
  if (!hits.length) return [];
  return [element('h3', { class: 'band' }, band), element('ol', { class: 'tiles' }, ...hits.map(tile))];
}

function ending(column, other, rest, tile) {
  const folded = (title) => element('details', { open: Math.min(column.shown, other.shown) < SHORT }, element('summary', {}, title),
    element('ol', { class: 'tiles' }, ...rest.map(tile)));
  if (column.shown === 0) {
    return [element('div', { class: 'nothing' }, element('h3', {}, 'Nothing relevant found'),
      element('p', {}, 'The model takes no picture to fit well enough.')),
    folded('The nearest pictures all the same')];
  }
  const hidden = column.shown > column.hits.length ? `${column.shown - column.hits.length} more before it. ` : '';
  return [element('p', { class: 'end' }, `${hidden}Relevance ends here`), ...(rest.length ? [folded(`The next ${rest.length} pictures`)] : [])];
}

function tileOf(hit, column, answer, picture) {
  const words = hit.true === null ? 'not known' : `${hit.true} of ${answer.facts} true`;
  const wrong = hit.wrong.join('; ');
  return element('li', { 'data-step': step(hit.degree), class: 'tile' },
    picture(hit, column, answer, `${words}${wrong ? `: ${wrong}` : ''}`),
    hit.true === null ? null : element('p', { 'aria-hidden': 'true' }, element('b', {}, words), wrong ? element('span', {}, wrong) : null));
}

function count(number) {
  return number === 1 ? '1 picture' : `${number} pictures`;
}
