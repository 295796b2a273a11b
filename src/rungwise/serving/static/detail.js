// One picture large, with all that is known of it. Arrow keys go through the pictures that were found.

import { ask, downloadAddress, fileAddress, itemAddress, thumbAddress } from "./api.js";
import { element, make, wantsNewTab } from "./dom.js";
import { factsOf, number, titleOf } from "./facts.js";
import { copy } from "./say.js";
import { LESS } from "./terms.js";
import { condition } from "./where.js";

const LARGE = 1024;
const SIMILAR = 12;

/**
 * @param on {like(item, weight), where(part), turn(item), jump(id), href(id), grade(place, item, title), why(item), favourite(item), closed()}:
 *   `turn` goes to a neighbour in the list, `jump` to any picture; `why` says why one was found, null that none is shown.
 */
export function makeDetail(on) {
  const dialog = element("detail");
  let item = null;
  let list = null; // {items(), more(): Promise, hasMore(), end()}

  /** Show a picture; what is not known of it yet is asked for. */
  async function open(id, of) {
    list = of;
    const known = list.items().find((one) => one.id === id);
    item = known ?? { id, captions: [], columns: {}, has_file: false };
    draw();
    element("detail-gone").hidden = !known || known.has_file;
    if (!dialog.open) {
      dialog.showModal();
      element("detail-title").focus();
    }
    dialog.scrollTop = 0;
    const mine = item;
    const [whole, similar] = await Promise.all([
      ask(itemAddress(id)).catch((error) => ({ error })),
      ask("similar", new URLSearchParams({ id, k: SIMILAR })).catch(() => ({ hits: [] })),
    ]);
    if (mine !== item || !dialog.open) return;
    if (whole.error) {
      if (!known) gone(whole.error.message);
    } else {
      item = { ...mine, ...whole };
      if (known) drawText();
      else draw();
    }
    strip("detail-similar", similar.hits.map((hit) => [hit.id, titleOf(hit), hit.has_file, hit.columns.hash]));
  }

  function draw() {
    const picture = element("detail-picture");
    const place = list.items().findIndex((one) => one.id === item.id);
    element("detail-before").disabled = place < 1;
    element("detail-after").disabled = place < 0 || (place === list.items().length - 1 && !list.hasMore());
    element("detail-place").textContent = place < 0 ? "" : `${number(place + 1)} of ${number(list.items().length)}${list.hasMore() ? "+" : ""}`;
    element("detail-gone").hidden = true;
    picture.hidden = !item.has_file;
    picture.onerror = () => gone("The file of this picture cannot be shown.");
    // The small one is at hand already, and fills the time until the large one is there.
    if (item.has_file) {
      picture.src = thumbAddress(item.id, 320, item.columns.hash);
      const large = make("img", { src: thumbAddress(item.id, LARGE, item.columns.hash) });
      const mine = item.id;
      large.onload = () => item?.id === mine && (picture.src = large.src);
      element("stage").style.setProperty("--width", item.columns.width ? `${item.columns.width}px` : "100%");
    } else gone("This collection has no picture files.");
    const fit = fitOf(item, list.end());
    element("detail-fit").textContent = fit;
    element("detail-fit").hidden = !fit;
    on.grade(element("detail-grades"), item, titleOf(item));
    on.why(item);
    on.favourite(item);
    strip("detail-folded", (item.folded ?? []).map((id) => [id, "Nearly the same picture", item.has_file]));
    strip("detail-similar", []);
    drawText();
  }

  function drawText() {
    const title = titleOf(item);
    element("detail-picture").alt = title;
    element("detail-title").textContent = title;
    const further = item.captions.slice(1).map((text) => make("li", { textContent: text, dir: "auto" }));
    element("detail-captions").replaceChildren(...further);
    element("detail-captions").hidden = !further.length;
    element("copy-caption").hidden = !item.captions.length;
    element("open-file").hidden = !item.has_file;
    element("open-file").href = fileAddress(item.id);
    element("download").hidden = !item.has_file;
    element("download").href = downloadAddress(item.id);
    const path = item.path || item.columns.file;
    const facts = factsOf(item.columns).concat(path ? [["file", path]] : [], path === item.id || path?.endsWith(`/${item.id}`) ? [] : [["id", item.id]]);
    element("detail-facts").replaceChildren(
      ...facts.flatMap(([name, value]) => [
        make("dt", { textContent: name, dir: "auto" }),
        make("dd", { dir: "auto" }, ...(Array.isArray(value) ? value.map((one) => pick(name, one)) : [value])),
      ]),
    );
  }

  function pick(column, value) {
    const button = make("button", { type: "button", class: "tag", textContent: value, title: `Only pictures with this in ${column}` });
    button.onclick = () => on.where(condition(column, "has", value));
    return button;
  }

  function gone(text) {
    element("detail-picture").hidden = true;
    element("detail-gone").textContent = text;
    element("detail-gone").hidden = false;
  }

  function strip(id, pictures) {
    element(id).hidden = !pictures.length;
    element(id).querySelector("ul").replaceChildren(
      ...pictures.map(([of, title, hasFile, hash]) => {
        const inner = hasFile ? make("img", { src: thumbAddress(of, 320, hash), alt: title, loading: "lazy" }) : make("span", { textContent: title });
        const link = make("a", { href: on.href(of), title }, inner);
        link.onclick = (event) => {
          if (wantsNewTab(event)) return;
          event.preventDefault();
          on.jump(of);
        };
        return make("li", {}, link);
      }),
    );
  }

  async function turn(by) {
    const place = list.items().findIndex((one) => one.id === item.id);
    if (place < 0) return;
    if (place + by >= list.items().length && list.hasMore()) await list.more();
    const next = list.items()[place + by];
    if (next) on.turn(next);
  }

  function close() {
    item = null;
    on.why(null);
    if (dialog.open) dialog.close();
  }

  element("detail-before").onclick = () => turn(-1);
  element("detail-after").onclick = () => turn(1);
  element("detail-like").onclick = () => on.like(item, 1);
  element("detail-unlike").onclick = () => on.like(item, LESS);
  element("copy-caption").onclick = () => copy(item.captions.join("\n"), item.captions.length > 1 ? "Captions" : "Caption");
  element("copy-link").onclick = () => copy(new URL(on.href(item.id), location.href).href, "Link");
  element("detail-close").onclick = on.closed;
  dialog.oncancel = (event) => {
    event.preventDefault();
    on.closed();
  };
  dialog.addEventListener("click", (event) => event.target === dialog && on.closed());
  dialog.onkeydown = (event) => {
    if (event.target.closest("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowRight") turn(1);
    else if (event.key === "ArrowLeft") turn(-1);
    else return;
    event.preventDefault();
  };

  return { open, close, isOpen: () => dialog.open };
}

const FITS = {
  exactly: "exactly what was asked for", close: "close to what was asked for", "loosely related": "loosely related",
  best: "one of the best matches", good: "a good match", further: "a further match",
};
const SURE = 0.85;
const FAIRLY_SURE = 0.5;

/** How well a picture fits, and how sure that is, in words; empty where that was not judged. */
function fitOf(item, end) {
  const fits = item.rung === 4 ? "less related" : FITS[item.band];
  if (!fits || !end) return "";
  const sure = item.rung === 4 || end.belief >= SURE ? "" : end.belief >= FAIRLY_SURE ? "probably " : "perhaps ";
  const said = sure + fits;
  return said[0].toUpperCase() + said.slice(1);
}
