// The page: asks both models at once, and keeps the query in the address.

import { tableOf } from './averages.js';
import { columnOf } from './column.js';
import { key } from './curve.js';
import { element } from './dom.js';

const OUTCOMES = {
  found: 'where the model of degrees works',
  missed: 'where it fails',
  absent: 'nothing like it is there',
};
const at = (id) => document.getElementById(id);
let asking = null;
let about = null;

async function answer(address, signal) {
  const got = await fetch(address, { signal });
  const read = await got.json();
  if (!got.ok) throw new Error(read.error);
  return read;
}

async function search(query) {
  asking?.abort();
  const mine = asking = new AbortController();
  at('columns').setAttribute('aria-busy', 'true');
  try {
    show(await answer(`demo/search?q=${encodeURIComponent(query)}`, mine.signal));
  } catch (error) {
    if (error.name === 'AbortError') return;
    complain(error.message);
  }
  if (mine === asking) at('columns').setAttribute('aria-busy', 'false');
}

function show(found) {
  at('message').hidden = true;
  at('query').value = found.query;
  document.title = `${found.query} – rungwise demo`;
  at('truth').replaceChildren(...truth(found));
  at('columns').replaceChildren(...found.columns.map((column) => columnOf(column, found)));
  for (const one of at('examples').querySelectorAll('a')) {
    if (one.textContent === found.query) one.setAttribute('aria-current', 'true');
    else one.removeAttribute('aria-current');
  }
}

function truth(found) {
  if (found.unknown.length) {
    const words = found.unknown.map((word) => `“${word}”`).join(', ');
    return [`Not understood: ${words}. So nobody can say how much of this is true, and the frames are grey. Pictures show circles,`
      + ' squares, triangles, stars, crosses and hearts.'];
  }
  if (!found.facts) return ['This says nothing of shapes, colours, sizes, textures or places, so the frames are grey.'];
  const facts = found.facts === 1 ? '1 fact' : `${found.facts} facts`;
  const right = found.right === 0 ? 'no picture' : found.right === 1 ? '1 picture' : `${found.right} pictures`;
  return [`The query states ${facts}. All are true of ${right} of ${found.pictures}, at least three quarters of ${found.relevant || 'none'}`
    + ' (these count as relevant).', key()];
}

function complain(words) {
  at('message').textContent = words;
  at('message').hidden = false;
}

function goTo(query) {
  const address = `?q=${encodeURIComponent(query)}`;
  if (location.search !== address) history.pushState(null, '', address);
  search(query);
}

function asked() {
  return new URLSearchParams(location.search).get('q')?.trim() || about?.examples[0]?.text || 'a red star';
}

function offer(examples) {
  for (const [outcome, words] of Object.entries(OUTCOMES)) {
    const own = examples.filter((one) => one.outcome === outcome);
    if (!own.length) continue;
    const chips = own.map(({ text }) => {
      const chip = element('a', { href: `?q=${encodeURIComponent(text)}`, class: 'chip' }, text);
      chip.addEventListener('click', (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        goTo(text);
      });
      return element('li', {}, chip);
    });
    at('examples').append(element('div', { class: 'offer' }, element('span', { id: `offer-${outcome}` }, `${words}:`),
      element('ul', { 'aria-labelledby': `offer-${outcome}` }, ...chips)));
  }
}

at('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const query = at('query').value.trim();
  if (query) goTo(query);
});
window.addEventListener('popstate', () => search(asked()));

async function begin() {
  try {
    about = await answer('demo/about');
    at('trained').textContent = `${about.trained.toLocaleString('en')} generated`;
    offer(about.examples);
    at('tables').replaceChildren(...about.compared.map((one) => tableOf(one, about.titles)));
    at('averages').hidden = !about.compared.length;
    search(asked());
  } catch (error) {
    complain(error.message);
  }
}

// Pages are put together from modules, each of which becomes a function: none may wait at its top level.
begin();
