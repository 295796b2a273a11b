// The page of both columns: what it shows of an answer. Where answers and pictures come from, its source says.

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

/* A source has these functions:
   about()                                what is compared, and what was measured;
   answer(query, signal)                  both answers to a query; an error where there is none;
   picture(hit, column, answer, words)    the picture of a hit, whose alternative text is `words`;
   address(query)                         the address of the page with a query, relative to the page;
   asked()                                the query of the present address, or nothing. */
export function openPage(source) {
  let asking = null;
  let about = null;

  async function search(query) {
    asking?.abort();
    const mine = asking = new AbortController();
    at('columns').setAttribute('aria-busy', 'true');
    try {
      show(await source.answer(query, mine.signal));
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
    at('columns').replaceChildren(...found.columns.map((column) => columnOf(column, found, source.picture)));
    for (const one of at('examples').querySelectorAll('a')) {
      if (one.textContent === found.query) one.setAttribute('aria-current', 'true');
      else one.removeAttribute('aria-current');
    }
  }

  function goTo(query) {
    const address = source.address(query);
    if (source.asked() !== query) history.pushState(null, '', address);
    search(query);
  }

  function asked() {
    return source.asked() || about?.examples[0]?.text || 'a red star';
  }

  function offer(examples) {
    for (const [outcome, words] of Object.entries(OUTCOMES)) {
      const own = examples.filter((one) => one.outcome === outcome);
      if (!own.length) continue;
      const chips = own.map(({ text }) => {
        const chip = element('a', { href: source.address(text), class: 'chip' }, text);
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

  async function begin() {
    try {
      about = await source.about();
      at('trained').textContent = `${about.trained.toLocaleString('en')} generated`;
      offer(about.examples);
      at('tables').replaceChildren(...about.compared.map((one) => tableOf(one, about.titles)));
      at('averages').hidden = !about.compared.length;
      search(asked());
    } catch (error) {
      complain(error.message);
    }
  }

  window.addEventListener('popstate', () => search(asked()));
  begin();
  return goTo;
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
