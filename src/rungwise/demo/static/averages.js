// What both models reach over many queries, beside chance, with how sure the difference is.

import { element } from './dom.js';

const DIGITS = (name) => (name.startsWith('CS') ? 2 : name.startsWith('right') ? 0 : 1);
const UNIT = (name) => (name.startsWith('right') ? ' %' : '');

export function tableOf(compared, titles) {
  const head = ['', ...['triplet', 'degrees'].map((name) => titles[name].replace('Trained with ', '')), 'chance', 'better by'];
  const row = (line) => {
    const digits = DIGITS(line.name);
    const number = (value) => `${value.toFixed(digits)}${UNIT(line.name)}`;
    const sign = (value) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;
    return element('tr', {}, element('th', { scope: 'row' }, line.name),
      ...[line.triplet, line.degrees, line.chance].map((value) => element('td', {}, number(value))),
      element('td', { class: line.low > 0 ? 'sure' : null }, `${sign(line.low)} to ${sign(line.high)}`));
  };
  return element('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': compared.title },
    element('table', {},
      element('caption', {}, `${compared.queries.toLocaleString('en')} ${compared.title}, among ${compared.gallery} pictures`),
      element('thead', {}, element('tr', {}, ...head.map((words, place) => (place ? element('th', { scope: 'col' }, words) : element('td'))))),
      element('tbody', {}, ...compared.lines.map(row))));
}
