// Pictures of hits, which are cells of large sheets, and the dialog that shows one of them with its caption.

import { element } from '../static/dom.js';

export function pictures(known, dialog) {
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
