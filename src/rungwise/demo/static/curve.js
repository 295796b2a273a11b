// The exact degrees of a ranking as bars, with the best possible ranking and chance as quiet lines.

import { drawn, element, step } from './dom.js';

const WIDTH = 360, HEIGHT = 84, LEFT = 20, BOTTOM = 14, TOP = 4;

export function curve(column, ideal, chance) {
  const bars = column.curve;
  const wide = (WIDTH - LEFT) / bars.length;
  const y = (degree) => TOP + (1 - degree) * (HEIGHT - TOP - BOTTOM);
  const x = (rank) => LEFT + rank * wide;
  const best = ideal.map((degree, rank) => `${rank ? 'L' : 'M'}${x(rank)} ${y(degree)}H${x(rank + 1)}`).join('');
  const chart = drawn('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': inWords(bars, chance) },
    ...[0, 1].map((degree) => drawn('text', { x: LEFT - 4, y: y(degree) + 3, class: 'tick end' }, String(degree))),
    drawn('text', { x: LEFT, y: HEIGHT - 2, class: 'tick' }, 'rank 1'),
    drawn('text', { x: WIDTH, y: HEIGHT - 2, class: 'tick end' }, String(bars.length)),
    ...bars.map((degree, rank) => drawn('rect', {
      x: x(rank) + wide * 0.1, y: y(degree), width: wide * 0.8, height: Math.max(0, y(0) - y(degree)), 'data-step': step(degree),
    })),
    drawn('path', { d: best, class: 'ideal' }),
    drawn('path', { d: `M${LEFT} ${y(chance)}H${WIDTH}`, class: 'chance' }),
    endLine(column.shown, bars.length, x),
  );
  return element('figure', { class: 'curve' }, chart);
}

export function key() {
  const line = (name, words) => element('span', {}, drawn('svg', { viewBox: '0 0 24 8', 'aria-hidden': 'true' },
    drawn('path', { d: 'M0 4H24', class: name })), words);
  return element('p', { class: 'key' }, element('span', {}, 'Exact degree by rank.'), line('ideal', 'best order'),
    line('chance', 'chance'), line('end-line', 'relevance ends'));
}

function endLine(shown, ranks, x) {
  return shown > ranks ? null : drawn('path', { d: `M${x(shown)} 0V${HEIGHT - BOTTOM}`, class: 'end-line' });
}

function inWords(bars, chance) {
  const mean = (values) => (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2);
  return `Exact degrees by rank: mean ${mean(bars.slice(0, 10))} of the first 10, ${mean(bars)} of the first ${bars.length}; chance ${chance.toFixed(2)}`;
}
