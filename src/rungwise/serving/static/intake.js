// Pictures that a visitor gives: chosen, dropped on the page or pasted.

import { ask } from "./api.js";
import { element } from "./dom.js";
import { complain, hush } from "./say.js";

/** @param on {waiting(address, name), given(id, joins), failed()}: `joins` if it joins what is searched already. */
export function makeIntake(on) {
  let largest = 20 * 1024 * 1024;
  let adding = false;

  async function send(file, joins = false) {
    hush();
    if (file.size > largest) {
      complain(`${file.name || "The picture"} is larger than ${largest >> 20} MiB. Choose a smaller one.`);
      return;
    }
    const preview = URL.createObjectURL(file);
    try {
      if (!joins) on.waiting(preview, file.name);
      const kept = await ask("pictures", undefined, { method: "POST", body: file });
      on.given(kept.picture, joins);
    } catch (error) {
      on.failed();
      complain(error.message, "Try again", () => send(file, joins));
    } finally {
      setTimeout(() => URL.revokeObjectURL(preview), 10_000); // by then the server's copy is shown
    }
  }

  function choose(joins) {
    adding = joins;
    element("file").click();
  }

  element("choose").onclick = element("choose-start").onclick = () => choose(false);
  element("file").onchange = () => {
    const [file] = element("file").files;
    if (file) send(file, adding);
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
    if (file) send(file);
  });
  addEventListener("paste", (event) => {
    const [file] = event.clipboardData?.files ?? [];
    if (file) send(file);
  });

  return { choose, limit: (bytes) => (largest = bytes) };
}
