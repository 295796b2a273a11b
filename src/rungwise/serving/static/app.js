"use strict";

const FIRST = 24;
const element = (id) => document.getElementById(id);
const LOCKED = "This page needs its token again. Open the address that rungwise serve printed.";
const numbers = new Intl.NumberFormat();

let limits = { max_results: 500, max_upload_bytes: 20 * 1024 * 1024 };
let current = null; // the search whose results are shown: {kind, ...}
let running = null; // the request on its way, aborted by the next
let shown = null; // the version of the index to which the positions of the shown results belong

// A search is one of {kind: "text", q}, {kind: "similar", position, version} and {kind: "picture", file, url}.
// The first two live in the address, so that a link can be shared; a picture stays on this page.

function searchOfAddress() {
  const asked = new URLSearchParams(location.search);
  if (asked.get("q")) return { kind: "text", q: asked.get("q") };
  if (/^\d+$/.test(asked.get("like") ?? "")) {
    return { kind: "similar", position: Number(asked.get("like")), version: asked.get("v") };
  }
  return null;
}

function addressOf(search) {
  const asked = new URLSearchParams();
  if (search?.kind === "text") asked.set("q", search.q);
  if (search?.kind === "similar") {
    asked.set("like", search.position);
    if (search.version) asked.set("v", search.version);
  }
  return asked.size ? `?${asked}` : location.pathname;
}

function open(search) {
  history.pushState(null, "", addressOf(search));
  show(search);
}

function versioned(asked, version) {
  return new URLSearchParams(version ? { ...asked, v: version } : asked);
}

async function ask(search, k, signal) {
  let reply;
  try {
    if (search.kind === "text") {
      reply = await fetch(`api/search?${new URLSearchParams({ q: search.q, k })}`, { signal });
    } else if (search.kind === "similar") {
      reply = await fetch(`api/similar/${search.position}?${versioned({ k }, search.version)}`, { signal });
    } else {
      reply = await fetch(`api/search-by-picture?k=${k}`, { method: "POST", body: search.file, signal });
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await reply.json().catch(() => ({}));
  if (reply.status === 401) throw new Error(LOCKED);
  if (reply.status === 409) throw new Error("The pictures here have been replaced since. Search again.");
  if (!reply.ok) throw new Error(answer.error ?? `The server answered with status ${reply.status}.`);
  return answer;
}

async function show(search, k = FIRST) {
  running?.abort();
  const request = (running = new AbortController());
  const growing = search !== null && search === current;
  if (current?.url && search !== current) URL.revokeObjectURL(current.url);
  current = search;
  element("message").hidden = true;
  element("welcome").hidden = search !== null;
  element("more").hidden = true;
  document.title = search?.kind === "text" ? `${search.q} – rungwise` : "rungwise";
  if (search?.kind === "text") element("query").value = search.q;
  if (search === null || search.kind !== "text") element("query").value = "";
  if (search === null) {
    clear();
    element("query").focus();
    return;
  }
  if (!growing) {
    clear();
    showSource(search);
    showSkeletons();
  }
  element("results").setAttribute("aria-busy", "true");
  try {
    const answer = await ask(search, Math.min(k, limits.max_results), request.signal);
    // Positions of two versions of the index do not belong side by side.
    const same = answer.index_version === shown;
    shown = answer.index_version;
    if (!same) showStatus().catch(() => {}); // the next search says what is wrong
    render(search, answer, k, growing && same);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!growing) clear();
    complain(error.message);
  } finally {
    if (running === request) element("results").setAttribute("aria-busy", "false");
  }
}

function clear() {
  element("results").replaceChildren();
  element("caption-list").replaceChildren();
  for (const id of ["source", "captions", "results-title"]) element(id).hidden = true;
  element("announcer").textContent = "";
}

function complain(text) {
  element("message").textContent = text;
  element("message").hidden = false;
}

function showSource(search, of) {
  if (search.kind === "text") return;
  const picture = element("source-picture");
  picture.hidden = false;
  picture.onerror = () => (picture.hidden = true);
  picture.src = search.kind === "picture" ? search.url : `pictures/${search.position}?${versioned({ thumb: 320 }, search.version)}`;
  picture.alt = of?.captions[0] ?? "The picture that is searched with";
  element("source-title").textContent = search.kind === "picture" ? search.file.name || "Your picture" : "More like this picture";
  element("source-note").textContent = of ? of.captions[0] ?? of.id : "";
  element("source").hidden = false;
  element("panel").classList.toggle("with-captions", search.kind === "picture");
}

function showSkeletons() {
  const cards = Array.from({ length: 8 }, () => {
    const card = document.createElement("li");
    card.className = "card skeleton";
    card.setAttribute("aria-hidden", "true");
    card.append(Object.assign(document.createElement("div"), { className: "frame" }));
    card.append(Object.assign(document.createElement("div"), { className: "about" }));
    return card;
  });
  element("results").replaceChildren(...cards);
}

function render(search, answer, k, growing) {
  const results = answer.results;
  showSource(search, answer.of);
  if (search.kind === "picture") showCaptions(answer);
  const titles = { text: `Pictures for “${search.q}”`, similar: "Similar pictures", picture: "Similar pictures" };
  element("results-title").textContent = results.length ? titles[search.kind] : "There is no other picture in this index.";
  element("results-title").hidden = false;
  // Growing keeps the cards that are there, so that neither the scroll position nor the focus is lost.
  const kept = growing ? element("results").children.length : 0;
  const cards = results.slice(kept).map((result) => card(result, answer.scale));
  if (growing) element("results").append(...cards);
  else element("results").replaceChildren(...cards);
  if (growing) cards[0]?.querySelector("a").focus({ preventScroll: true });
  element("more").hidden = results.length < k || k >= limits.max_results;
  element("more").onclick = () => show(search, k * 2);
  element("announcer").textContent = `${results.length} pictures`;
}

function showCaptions(answer) {
  const rows = answer.captions.map((caption) => {
    const row = document.createElement("li");
    row.append(textButton(caption.text), bar(caption.score, answer.caption_scale), score(caption.score));
    return row;
  });
  element("caption-list").replaceChildren(...rows);
  element("no-captions").hidden = answer.has_captions;
  element("captions").hidden = false;
}

function textButton(text) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.title = `Search for: ${text}`;
  button.onclick = () => open({ kind: "text", q: text });
  return button;
}

function card(result, scale) {
  const version = shown;
  const item = element("card").content.firstElementChild.cloneNode(true);
  const title = result.captions[0] ?? result.id;
  const frame = item.querySelector(".frame");
  const picture = frame.querySelector("img");
  const words = [result.id, ...result.captions].join("\n");
  frame.title = words;
  picture.alt = title;
  const without = (text) => {
    picture.hidden = true;
    frame.querySelector(".gone").textContent = text;
    frame.querySelector(".gone").hidden = false;
    frame.removeAttribute("href");
  };
  picture.onerror = () => {
    without("Cannot be shown");
    searchAgainIfReplaced();
  };
  // Nearly fitting pictures fill their frame; of others that would cut off what was searched for.
  picture.onload = () => {
    const aspect = picture.naturalWidth / picture.naturalHeight;
    picture.classList.toggle("whole", aspect < 1.15 || aspect > 1.6);
  };
  if (result.has_file) {
    frame.href = `pictures/${result.position}?${versioned({}, shown)}`;
    picture.src = `pictures/${result.position}?${versioned({ thumb: 480 }, shown)}`;
  } else without(words);
  const caption = item.querySelector(".caption");
  caption.textContent = title;
  caption.classList.toggle("id", result.captions.length === 0);
  item.querySelector(".bar").replaceWith(bar(result.score, scale));
  item.querySelector(".score").replaceWith(score(result.score));
  const like = item.querySelector(".like");
  like.setAttribute("aria-label", `More like this: ${title}`);
  like.onclick = () => open({ kind: "similar", position: result.position, version });
  return item;
}

let looking = false;
async function searchAgainIfReplaced() {
  if (looking) return;
  looking = true;
  const version = shown;
  try {
    const about = await (await fetch("api/status")).json();
    if (about.index_version && about.index_version !== version && shown === version && current) show(current);
  } catch {
    // whoever searches next is told that the server does not answer
  } finally {
    looking = false;
  }
}

function bar(value, [empty, full]) {
  const outer = Object.assign(document.createElement("span"), { className: "bar" });
  const inner = document.createElement("span");
  const share = full > empty ? (value - empty) / (full - empty) : 1;
  inner.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  outer.setAttribute("aria-hidden", "true");
  outer.append(inner);
  return outer;
}

function score(value) {
  const text = Object.assign(document.createElement("span"), { className: "score" });
  text.textContent = value.toFixed(3);
  text.title = "Similarity";
  return text;
}

function searchWithPicture(file) {
  if (file.size > limits.max_upload_bytes) {
    complain(`${file.name} is larger than ${limits.max_upload_bytes >> 20} MiB. Choose a smaller picture.`);
    return;
  }
  open({ kind: "picture", file, url: URL.createObjectURL(file) });
}

element("search").onsubmit = (event) => {
  event.preventDefault();
  const q = element("query").value.trim();
  if (q) open({ kind: "text", q });
  else element("query").focus();
};
element("home").onclick = (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(null);
};
element("choose").onclick = () => element("file").click();
element("file").onchange = () => {
  const [file] = element("file").files;
  if (file) searchWithPicture(file);
  element("file").value = ""; // so that the same file can be chosen again
};

// Entering a child fires before leaving its parent: the veil goes when as many were left as entered.
let entered = 0;
const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
const veil = (change) => {
  entered = Math.max(0, change);
  element("drop").hidden = entered === 0;
};
addEventListener("dragenter", (event) => holdsFiles(event) && veil(entered + 1));
addEventListener("dragleave", (event) => holdsFiles(event) && veil(entered - 1));
addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  veil(0);
  const [file] = event.dataTransfer.files;
  if (file) searchWithPicture(file);
});
addEventListener("paste", (event) => {
  const [file] = event.clipboardData?.files ?? [];
  if (file) searchWithPicture(file);
});
addEventListener("popstate", () => show(searchOfAddress()));

async function showStatus() {
  const reply = await fetch("api/status");
  if (reply.status === 401) throw new Error(LOCKED);
  const about = await reply.json();
  limits = about;
  const parts = [about.name, `${numbers.format(about.pictures)} pictures`];
  if (about.captions) parts.push(`${numbers.format(about.captions)} captions`);
  if (about.skipped) parts.push(`${numbers.format(about.skipped)} unreadable files left out`);
  parts.push(`model ${about.model}`);
  if (about.problem) parts.push(`a newer index is not shown: ${about.problem}`);
  element("status").textContent = parts.join(" · ");
  const examples = about.examples.map((text) => {
    const entry = document.createElement("li");
    entry.append(textButton(text));
    return entry;
  });
  element("examples").replaceChildren(...examples);
}

showStatus().catch((error) => complain(error.message === LOCKED ? LOCKED : "The server does not answer. Is it still running?"));
show(searchOfAddress());
