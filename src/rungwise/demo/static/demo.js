// The page of a running demo: its server answers any query, and the query stays in the address.

import { element } from './dom.js';
import { openPage } from './page.js';

const at = (id) => document.getElementById(id);

async function got(address, signal) {
  const answer = await fetch(address, { signal });
  const read = await answer.json();
  if (!answer.ok) throw new Error(read.error);
  return read;
}

// Pages are put together from modules, each of which becomes a function: none may wait at its top level.
const goTo = openPage({
  about: () => got('demo/about'),
  answer: (query, signal) => got(`demo/search?q=${encodeURIComponent(query)}`, signal),
  address: (query) => `?q=${encodeURIComponent(query)}`,
  asked: () => new URLSearchParams(location.search).get('q')?.trim(),
  picture(hit, column, answer, words) {
    const query = `q=${encodeURIComponent(answer.query)}`;
    return element('a', { class: 'frame', href: `${column.name}/?${query}&show=${encodeURIComponent(hit.id)}`, title: words },
      element('img', { src: `${column.name}/images/${encodeURIComponent(hit.id)}?thumb=128`, width: 128, height: 128, alt: words }));
  },
});
at('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const query = at('query').value.trim();
  if (query) goTo(query);
});
