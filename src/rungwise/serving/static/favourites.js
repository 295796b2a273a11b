// Favourites and saved searches, which the server keeps beside the index.

import { ask } from "./api.js";
import { addressOf, nothing } from "./address.js";
import { element, icon, make, wantsNewTab } from "./dom.js";
import { short } from "./facts.js";
import { announce, toast } from "./say.js";

const button = element("favourite");

/** @param on {open(search), search()}: go to a search; the one that is shown. */
export function makeFavourites(on) {
  let kept = false; // whether whoever looks may keep some
  let marked = new Set();
  let item = null; // the picture that is shown large

  /** What the server keeps, as /about says. */
  async function offer(about) {
    kept = !about.not_kept && about.gradable;
    element("not-kept").textContent = about.not_kept ? `Favourites and saved searches are not kept here: ${about.not_kept}.` : "";
    element("not-kept").hidden = !about.not_kept;
    const [favourites, saved] = await Promise.all([ask("favourites"), ask("searches")]).catch(() => [null, null]);
    if (favourites) took(favourites);
    if (saved) list(saved);
    of(on.search());
  }

  /** Another search is shown. */
  function of(search) {
    element("save-search").hidden = !kept || !search || !(search.q.trim() || search.where);
    element("only-favourites").setAttribute("aria-pressed", Boolean(search?.favourites));
    element("only-favourites").hidden = !marked.size && !search?.favourites;
  }

  function took({ favourites }) {
    marked = new Set(favourites.map(({ id }) => id));
    element("start").querySelector("[data-by=favourites]").hidden = !marked.size;
    press();
    of(on.search());
  }

  /** Another picture is shown large. */
  function show(picture) {
    item = picture;
    press();
  }

  function press() {
    button.hidden = !kept || !item;
    button.setAttribute("aria-pressed", Boolean(item && marked.has(item.id)));
  }

  button.onclick = async () => {
    const { id } = item;
    const now = !marked.has(id);
    try {
      took(await ask(`favourites/${encodeURIComponent(id)}`, undefined, { method: now ? "PUT" : "DELETE" }));
      announce(now ? "Marked as a favourite" : "No favourite any more");
    } catch (error) {
      toast(error.message);
    }
  };

  // Saved searches

  function list({ searches }) {
    element("saved").hidden = !searches.length;
    element("saved-list").replaceChildren(
      ...searches.map(({ name, q, where }) => {
        const search = { ...nothing(), q, where };
        const link = make("a", { class: "chip-text", href: addressOf(search), textContent: short(name, 60), title: [q, where].filter(Boolean).join(" · "), dir: "auto" });
        link.onclick = (event) => {
          if (wantsNewTab(event)) return;
          event.preventDefault();
          on.open(search);
        };
        const remove = make("button", { type: "button", class: "remove", aria: { label: `Remove the saved search ${short(name, 60)}` } }, icon("cross"));
        remove.onclick = () => change(name, "DELETE");
        return make("li", { class: "chip filter" }, link, ...(kept ? [remove] : []));
      }),
    );
  }

  async function change(name, method, body) {
    const options = body ? { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : { method };
    try {
      list(await ask(`searches/${encodeURIComponent(name)}`, undefined, options));
      return true;
    } catch (error) {
      toast(error.message);
      return false;
    }
  }

  const sheet = element("save");
  element("save-search").onclick = () => {
    const { q, where } = on.search();
    element("menu").open = false;
    element("save-what").textContent = [q, where].filter(Boolean).join(" · ");
    element("save-name").value = short(q.trim() || where, 100);
    sheet.showModal();
    element("save-name").select();
  };
  element("save-form").onsubmit = async (event) => {
    event.preventDefault();
    const { q, where } = on.search();
    if (!(await change(element("save-name").value.trim(), "PUT", { q, where }))) return;
    sheet.close();
    toast("Saved: it stands on the start page");
  };
  element("save-close").onclick = () => sheet.close();
  element("only-favourites").onclick = () => {
    element("menu").open = false;
    const search = on.search();
    on.open({ ...search, favourites: search.favourites ? "" : "true", show: "", by: "" });
  };
  addEventListener("click", (event) => {
    if (!event.target.closest("#menu")) element("menu").open = false;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") element("menu").open = false;
  });

  return { offer, of, show };
}
