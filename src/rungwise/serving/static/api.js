// Requests to the server, and what is said when they fail.

/** A request that was not answered as hoped; its message is for people. */
export class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** The answer to a request, as an object. */
export async function ask(path, parameters = new URLSearchParams(), options = {}) {
  let reply;
  try {
    reply = await fetch(parameters.size ? `${path}?${parameters}` : path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is it still running?");
  }
  const answer = await reply.json().catch(() => ({}));
  if (reply.ok) return answer;
  if (reply.status === 401) dispatchEvent(new Event("locked"));
  throw new Refused(answer.error ?? `The server answered with status ${reply.status}.`, reply.status);
}

// Ids are any text. A slash is written as %2F, or else a browser would take the dots of "a/../b" for a path.
const encoded = encodeURIComponent;

export const itemAddress = (id) => `items/${encoded(id)}`;
export const fileAddress = (id) => `images/${encoded(id)}`;
export const downloadAddress = (id) => `${fileAddress(id)}?download=true`;
/** A small copy; where the hash of the file is given, the browser keeps it. */
export const thumbAddress = (id, side, hash) => `${fileAddress(id)}?thumb=${side}${hash ? `&content=${hash.slice(0, 32)}` : ""}`;
export const uploadAddress = (id) => `pictures/${encoded(id)}`;
