// The page: one pair after the other, graded by keys or by buttons.
//
// What was graded is the server's to know. The page knows what was skipped, which comes again when it is loaded anew.

import { announce, element, list, make, show } from "./dom.js";
import * as server from "./server.js";
import { describe, finish, tell } from "./summary.js";

const NAME = "rungwise-grader"; // under which the browser keeps the name
const ROLES = {
  i2t: ["Picture, the query", "Caption that was found"],
  t2i: ["Picture that was found", "Caption, the query"],
  "": ["Picture", "Caption"],
};

let about = null;
let who = "";
let progress = null; // of this grader, as the server said last
let current = null; // the pair that is shown
let busy = false; // a request is on its way, until whose end no key counts
const skipped = new Set();
let actions = []; // what can be undone: {place, skipped}
const ahead = new Map(); // answers for pairs that will be shown next

function remembered() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

function remember(name) {
  try {
    localStorage.setItem(NAME, name);
  } catch {
    // It is asked for again next time.
  }
}

/** Do something with the server; what goes wrong is said, and everything stays as it is. */
async function withServer(act) {
  if (busy) return;
  busy = true;
  try {
    await act();
    element("message").hidden = true;
  } catch (error) {
    element("message").textContent = error.message;
    element("message").hidden = false;
  } finally {
    busy = false;
  }
}

// Who grades

function askName() {
  current = null;
  element("name").value = who || remembered();
  show(["name-form"], ["pair", "done", "far", "who-shown", "agreement"]);
  element("name").focus();
}

async function begin(name) {
  who = name;
  progress = await server.progress(who);
  skipped.clear();
  actions = progress.history.map((place) => ({ place, skipped: false }));
  element("who").textContent = who;
  show(["who-shown", "far"], ["name-form"]);
  await next();
}

// Which pair

const open = (place) => progress.given[place] === null && !skipped.has(place);

function following(place = -1) {
  const places = progress.given.map((_, at) => at).filter(open);
  return places.find((at) => at > place) ?? places[0];
}

async function next() {
  const place = following(current ? current.place : -1);
  if (place === undefined) {
    current = null;
    finish(about, progress, skipped.size);
    return;
  }
  await draw(place);
}

function asked(place) {
  if (!ahead.has(place)) {
    const answer = server.pair(place);
    answer.catch(() => ahead.delete(place));
    ahead.set(place, answer);
  }
  return ahead.get(place);
}

async function draw(place) {
  const pair = await asked(place);
  ahead.delete(place);
  current = pair;
  const [ofPicture, ofCaption] = ROLES[pair.direction];
  element("picture-role").textContent = ofPicture;
  element("caption-role").textContent = ofCaption;
  element("caption").textContent = pair.text;
  element("picture").src = server.pictureAddress(place);
  element("own").hidden = !pair.own.length;
  list("own-list", pair.own);
  element("undo").disabled = !actions.length;
  show(["pair"], ["done"]);
  tell(progress);
  announce(`${element("count").textContent} graded. ${ofCaption}: ${pair.text}`);
  const then = following(place);
  if (then !== undefined && then !== place) {
    asked(then);
    new Image().src = server.pictureAddress(then);
  }
}

// What people do

const give = (grade) =>
  withServer(async () => {
    if (!current) return;
    const place = current.place;
    progress = await server.judge(who, current, grade);
    skipped.delete(place);
    actions.push({ place, skipped: false });
    await next();
  });

const skip = () =>
  withServer(async () => {
    if (!current) return;
    skipped.add(current.place);
    actions.push({ place: current.place, skipped: true });
    await next();
  });

const undo = () =>
  withServer(async () => {
    const last = actions.at(-1);
    if (!last) return;
    if (last.skipped) skipped.delete(last.place);
    else progress = await server.judge(who, await server.pair(last.place), null);
    actions.pop();
    await draw(last.place);
  });

const KEYS = { u: undo, Backspace: undo, s: skip };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, textarea")) return;
  if (!progress || !element("name-form").hidden) return;
  const grade = about.grades.map(([value]) => value).find((value) => String(value) === event.key);
  const act = grade ? () => give(grade) : KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

element("picture").onerror = () => {
  // It was there when the server began.
  if (!current || busy) return;
  const place = current.place;
  withServer(async () => {
    skipped.add(place);
    await next();
    throw new Error("A picture can no longer be shown; its pair was skipped.");
  });
};
element("undo").onclick = undo;
element("undo-last").onclick = undo;
element("later").onclick = skip;
element("other").onclick = askName;
element("skipped").onclick = () =>
  withServer(async () => {
    skipped.clear();
    actions = actions.filter((one) => !one.skipped);
    await next();
  });
element("name-form").onsubmit = (event) => {
  event.preventDefault();
  const name = element("name").value.trim();
  if (!name) return;
  remember(name);
  withServer(() => begin(name));
};

withServer(async () => {
  about = await server.about();
  describe(about);
  element("grades").append(
    ...about.grades.map(([grade, meaning]) => {
      const button = make("button", { type: "button" }, make("kbd", { textContent: grade }), make("span", { textContent: meaning }));
      button.onclick = () => give(grade);
      return button;
    }),
  );
  if (about.grader) {
    show([], ["other", "another"]);
    await begin(about.grader);
  } else if (remembered()) await begin(remembered());
  else askName();
});
