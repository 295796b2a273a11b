const module0 = (() => {
// Elements of a page, without markup from strings: what is shown is never read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

function element(name, settings = {}, ...children) {
  return filled(document.createElement(name), settings, children);
}

function drawn(name, settings = {}, ...children) {
  return filled(document.createElementNS(SVG, name), settings, children);
}

function filled(node, settings, children) {
  for (const [key, value] of Object.entries(settings)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// 4 where all is true, down to 0 where less than a quarter is: the colour of a frame.
function step(degree) {
  return degree === null || degree === undefined ? null : Math.floor(degree * 4 + 1e-6);
}

return { element, drawn, step };
})();
const module1 = (() => {
// What both models reach over many queries, beside chance, with how sure the difference is.

const { element } = module0;

const DIGITS = (name) => (name.startsWith('CS') ? 2 : name.startsWith('right') ? 0 : 1);
const UNIT = (name) => (name.startsWith('right') ? ' %' : '');

function tableOf(compared, titles) {
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

return { tableOf };
})();
const module2 = (() => {
// The exact degrees of a ranking as bars, with the best possible ranking and chance as quiet lines.

const { drawn, element, step } = module0;

// One unit is one rank across, and a hundredth of a degree up; the page stretches both.
const HEIGHT = 100;

function curve(column, ideal, chance) {
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

function key() {
  const line = (name, words) => element('span', {}, drawn('svg', { viewBox: '0 0 24 8', 'aria-hidden': 'true' },
    drawn('path', { d: 'M0 4H24', class: name })), words);
  return element('p', { class: 'key' }, element('span', {}, 'The bars: exact degree by rank.'), line('ideal', 'best order'),
    line('chance', 'chance'), line('end-line', 'relevance ends'));
}

function inWords(bars, chance) {
  const mean = (values) => (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2);
  return `Exact degrees by rank: mean ${mean(bars.slice(0, 10))} of the first 10, ${mean(bars)} of the first ${bars.length}; chance ${chance.toFixed(2)}`;
}

return { curve, key };
})();
const module3 = (() => {
// One model's answer: its numbers for this query, its curve, and its pictures in bands down to the end of relevance.

const { curve } = module2;
const { element, step } = module0;

const NUMBERS = [['nDCG@10', 0, ''], ['CS@100', 2, ''], ['CutF1', 0, '']];
// Where one of the models shows fewer, the next ones of both are in sight as well.
const SHORT = 6;
const BANDS = ['exactly', 'close', 'loosely related'];

function columnOf(column, answer, picture) {
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

return { columnOf };
})();
const module4 = (() => {
// The page of both columns: what it shows of an answer. Where answers and pictures come from, its source says.

const { tableOf } = module1;
const { columnOf } = module3;
const { key } = module2;
const { element } = module0;

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
function openPage(source) {
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

return { openPage };
})();
const module5 = (() => {
// The field that chooses among the queries of the page: words filter the list, arrows or a tap choose.

const { element } = module0;

const at = (id) => document.getElementById(id);

function choice(queries, asked, goTo) {
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

return { choice };
})();
const module6 = (() => {
// Pictures of hits, which are cells of large sheets, and the dialog that shows one of them with its caption.

const { element } = module0;

function pictures(known, dialog) {
  const { side, margin, across, down } = known.cells;
  const cell = side + 2 * margin;
  // Where the part that is seen begins, in hundredths of what the sheet is larger than that part.
  const share = (place, all) => (100 * (place * cell + margin)) / (all * cell - side);

  function part(number, words) {
    const place = number % (across * down);
    const sheet = Math.floor(number / (across * down));
    const rows = Math.min(down, Math.ceil((known.pictures.length - sheet * across * down) / across));
    const [x, y] = [share(place % across, across), share(Math.floor(place / across), rows)];
    const look = `background-image: url("pictures-${sheet + 1}.png"); background-position: ${x}% ${y}%;`
      + ` background-size: ${(100 * across * cell) / side}% ${(100 * rows * cell) / side}%`;
    return element('span', { class: 'cell', role: 'img', 'aria-label': words, style: look });
  }

  function open(hit, column, answer, words) {
    const about = hit.true === null ? 'The query was not understood.' : `${hit.true} of the ${answer.facts} facts of the query are true of this picture.`;
    const close = element('button', { type: 'button', autofocus: true }, 'Close');
    close.addEventListener('click', () => dialog.close());
    dialog.replaceChildren(
      element('div', { class: 'frame', 'data-step': hit.degree === null ? null : Math.floor(hit.degree * 4 + 1e-6) }, part(hit.picture, words)),
      element('p', {}, element('b', {}, about), ...hit.wrong.map((one) => element('span', {}, one))),
      element('p', {}, `A caption of this picture: “${known.pictures[hit.picture]}”.`),
      close,
    );
    dialog.showModal();
  }

  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  return function picture(hit, column, answer, words) {
    const button = element('button', { type: 'button', class: 'frame', title: words }, part(hit.picture, words));
    button.addEventListener('click', () => open(hit, column, answer, words));
    return button;
  };
}

return { pictures };
})();
const module7 = (() => {
// An answer as the server of a demo would send it, from its packed form: words stand in a table, degrees as counts of facts.

function answerOf(packed, words) {
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

return { answerOf };
})();
const module8 = (() => {
// The exported page: no server answers; all that it knows stands in answers.js, which comes before.

const { openPage } = module4;
const { choice } = module5;
const { pictures } = module6;
const { answerOf } = module7;

const at = (id) => document.getElementById(id);
const known = globalThis.rungwiseDemo;
const texts = known.answers.map((one) => one.query);

// Opened from a disk, a page may change no part of its address but the one after #.
const asked = () => new URLSearchParams(location.hash.slice(1)).get('q')?.trim() || texts[0];
const goTo = openPage({
  about: async () => known.about,
  async answer(query) {
    const found = known.answers.find((one) => one.query === query);
    if (!found) throw new Error(`This page knows ${texts.length} queries, and “${query}” is none of them. Choose one in the field above.`);
    return answerOf(found, known.words);
  },
  picture: pictures(known, at('picture')),
  address: (query) => `#q=${encodeURIComponent(query)}`,
  asked,
});
at('known').textContent = `${texts.length}`;
choice(known.answers, asked, goTo);
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // its address has no query
  at('columns').focus();
});

return {  };
})();
