// The field that chooses among the queries of the page: words filter the list, arrows or a tap choose.

import { element } from '../static/dom.js';

const at = (id) => document.getElementById(id);

export function choice(queries, asked, goTo) {
  const field = at('query');
  const list = at('queries');
  const options = queries.map(({ query, kind }, place) => {
    const option = element('li', { id: `query-${place}`, role: 'option', 'aria-selected': false }, query, element('small', {}, kind));
    option.addEventListener('mousedown', (event) => event.preventDefault()); // which would take the focus from the field
    option.addEventListener('click', () => choose(place));
    return option;
  });
  list.append(...options);
  let active = -1;

  const open = () => !at('list').hidden;
  const seen = () => options.flatMap((option, place) => (option.hidden ? [] : [place]));

  function choose(place) {
    close();
    goTo(queries[place].query);
  }

  function filter(words) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    options.forEach((option, place) => {
      option.hidden = !parts.every((part) => queries[place].query.includes(part));
    });
    const left = seen().length;
    const found = `${left} of ${queries.length} queries have these words${left ? '' : '; the full demo answers any'}`;
    at('count').textContent = parts.length ? found : `${queries.length} queries; words filter them`;
    activate(-1);
  }

  function show(words) {
    filter(words);
    at('list').hidden = false;
    field.setAttribute('aria-expanded', 'true');
  }

  function close() {
    at('list').hidden = true;
    field.setAttribute('aria-expanded', 'false');
    activate(-1);
  }

  function leave() {
    close();
    field.value = asked();
  }

  function activate(place) {
    options[active]?.setAttribute('aria-selected', 'false');
    active = place;
    if (place < 0) {
      field.removeAttribute('aria-activedescendant');
      return;
    }
    options[place].setAttribute('aria-selected', 'true');
    field.setAttribute('aria-activedescendant', options[place].id);
    options[place].scrollIntoView({ block: 'nearest' });
  }

  function move(by) {
    if (!open()) show('');
    const places = seen();
    const now = places.indexOf(active);
    const next = now < 0 && by < 0 ? places.length - 1 : now + by;
    if (places.length) activate(places[(next + places.length) % places.length]);
  }

  field.addEventListener('click', () => open() || (field.select(), show('')));
  field.addEventListener('input', () => show(field.value));
  field.addEventListener('blur', leave);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      move(event.key === 'ArrowDown' ? 1 : -1);
    } else if (event.key === 'Escape') leave();
  });
  at('search').addEventListener('submit', (event) => {
    event.preventDefault();
    if (!open()) show('');
    else if (active >= 0 || seen().length) choose(active >= 0 ? active : seen()[0]);
  });
  at('next').addEventListener('click', () => {
    const now = queries.findIndex((one) => one.query === asked());
    choose((now + 1) % queries.length);
  });
}
