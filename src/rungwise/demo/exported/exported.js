// The exported page: no server answers; all that it knows stands in answers.js, which comes before.

import { openPage } from '../static/page.js';
import { choice } from './choice.js';
import { pictures } from './pictures.js';
import { answerOf } from './unpacking.js';

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
