// Requests to the server, and what is said when they fail.

let version = null; // of the pairs that the page was made for

/** The answer to a request, as an object; an Error with a message for people if it was refused. */
async function ask(path, parameters = {}, options = {}) {
  const asked = new URLSearchParams(parameters);
  let reply;
  try {
    reply = await fetch(asked.size ? `${path}?${asked}` : path, options);
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await reply.json().catch(() => ({}));
  if (reply.ok) {
    // Pairs are named by their places, which name others where another table is served by now.
    version ??= answer.version;
    if (answer.version !== version) throw new Error("Other pairs are asked by now. Load the page again.");
    return answer;
  }
  throw new Error(answer.error ?? `The server answered with status ${reply.status}.`);
}

export const about = () => ask("grading/about");
export const progress = (who) => ask("grading/progress", { who });
export const pair = (place) => ask(`grading/pairs/${place}`);
export const pictureAddress = (place) => `grading/pictures/${place}?${new URLSearchParams({ version })}`;

/** Keep a grade of a pair, null to take it back; gives how far the grader is. */
export function judge(who, { image, caption, text_hash }, grade) {
  const body = JSON.stringify({ who, image, caption, text_hash, grade });
  return ask("grading/judgements", {}, { method: "POST", body, headers: { "Content-Type": "application/json" } });
}
