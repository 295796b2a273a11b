// The exact degrees of a ranking as bars, with the best possible ranking and chance as quiet lines.

import { drawn, element, step } from './dom.js';

// One unit is one rank across, and a hundredth of a degree up; the page stretches both.
const HEIGHT = 100;

export function curve(column, ideal, chance) {
  const bars = column.curve;
  const y = (degree) => (1 - degree) * HEIGHT;
  const best = ideal.map((degree, rank) => `${rank ? 'L' : 'M'}${rank} ${y(degree)}H${rank + 1}`).join('');
  const chart = drawn('svg', { viewBox: `0 0 ${bars.length} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': inWords(bars, chance) },
    ...bars.map((degree, rank) => drawn('rect', { x: rank + 0.1, y: y(degree), width: 0.8, height: degree * HEIGHT, 'data-step': step(degree) })),
    drawn('path', { d: best, class: 'ideal' }),
    drawn('path', { d: `M0 ${y(chance)}H${bars.length}`, class: 'chance' }),
    column.shown > bars.length ? null : drawn('path', { d: `M${column.shown} 0V${HEIGHT}`, class: 'end-line' }),
  );
  const label = (words) => element('span', {}, words);
  return element('figure', { class: 'curve' }, element('div', { class: 'scale', 'aria-hidden': 'true' }, label('1'), label('0')), chart,
    element('div', { class: 'ranks', 'aria-hidden': 'true' }, label('rank 1'), label(String(bars.length))));
}

export function key() {
  const line = (name, words) => element('span', {}, drawn('svg', { viewBox: '0 0 24 8', 'aria-hidden': 'true' },
    drawn('path', { d: 'M0 4H24', class: name })), words);
  return element('p', { class: 'key' }, element('span', {}, 'The bars: exact degree by rank.'), line('ideal', 'best order'),
    line('chance', 'chance'), line('end-line', 'relevance ends'));
}

function inWords(bars, chance) {
  const mean = (values) => (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2);
  return `Exact degrees by rank: mean ${mean(bars.slice(0, 10))} of the first 10, ${mean(bars)} of the first ${bars.length}; chance ${chance.toFixed(2)}`;
}
