// Shows openapi.json. Texts from it, and answers, only ever become text: nothing is put into the page as markup.

const METHODS = ["get", "post", "put", "delete"];

function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function resolved(schema, all) {
  const name = schema?.$ref?.split("/").pop();
  return name ? { name, ...all.components.schemas[name] } : schema ?? {};
}

function typeOf(schema, all) {
  const found = resolved(schema, all);
  if (found.name) return found.name;
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.anyOf) return found.anyOf.map((one) => typeOf(one, all)).join(" | ");
  if (found.type === "array") return found.items ? `list of ${typeOf(found.items, all)}` : "list";
  if (found.type === "object") return "object";
  return found.format === "binary" ? "bytes" : found.type ?? "any";
}

function limitsOf(schema) {
  const found = [];
  if (schema.minimum !== undefined) found.push(`at least ${schema.minimum}`);
  if (schema.maximum !== undefined) found.push(`at most ${schema.maximum}`);
  if (schema.maxLength !== undefined) found.push(`at most ${schema.maxLength} characters`);
  if (schema.maxItems !== undefined) found.push(`at most ${schema.maxItems}`);
  if (schema.default !== undefined) found.push(`default ${JSON.stringify(schema.default)}`);
  return found.join(", ");
}

function table(heads, rows) {
  const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell)))));
  return make("div", { className: "table" }, make("table", {}, head, body));
}

function parameters(given, tried) {
  const rows = given.map((one) => {
    const field = make("input", { name: one.name, required: one.required ?? false });
    field.setAttribute("aria-label", `${one.name}, to try`);
    const schema = one.schema.anyOf?.find((option) => option.type !== "null") ?? one.schema;
    const about = [one.description, limitsOf(schema), one.required ? "required" : ""].filter(Boolean).join("; ");
    const row = [make("code", {}, one.name), typeOf(one.schema, tried.all), about];
    if (tried.possible) row.push(field);
    return row;
  });
  return table(["parameter", "type", "meaning", ...(tried.possible ? ["try"] : [])], rows);
}

function answers(responses, all) {
  const rows = Object.entries(responses).map(([status, one]) => {
    const kinds = Object.entries(one.content ?? {});
    const shape = kinds.map(([kind, content]) => (kind === "application/json" ? typeOf(content.schema, all) : kind)).join(", ");
    return [make("code", {}, status), one.description, shape];
  });
  return make("details", {}, make("summary", {}, "Answers"), table(["status", "meaning", "content"], rows));
}

function addressOf(path, given, form) {
  const asked = new URLSearchParams();
  let target = path;
  for (const one of given) {
    const value = form.elements[one.name].value;
    if (one.in === "path") target = target.replace(new RegExp(`\\{${one.name}(:path)?\\}`), encodeURIComponent(value));
    else if (value !== "") asked.append(one.name, value);
  }
  return `.${target}${asked.size ? `?${asked}` : ""}`;
}

async function shown(address) {
  const reply = await fetch(address);
  const kind = reply.headers.get("content-type") ?? "";
  const content = await reply.blob();
  let text = `${content.size} bytes of ${kind}`;
  if (/json|text/.test(kind)) text = await content.text();
  if (kind.includes("json")) text = JSON.stringify(JSON.parse(text), null, 2);
  return `${reply.status} ${decodeURI(address)}\n\n${text}`;
}

function operation(path, method, about, all) {
  const given = about.parameters ?? [];
  const possible = method === "get";
  const address = make("span", { className: "address" }, make("span", { className: "method" }, method.toUpperCase()), path);
  const section = make("section", { id: about.operationId }, make("h2", {}, address), make("p", {}, about.description ?? about.summary ?? ""));
  const form = make("form", {});
  if (given.length) form.append(parameters(given, { all, possible }));
  if (about.requestBody) section.append(make("p", { className: "quiet" }, `Body: ${about.requestBody.description}`));
  if (possible) {
    const output = make("pre", { hidden: true, tabIndex: 0 });
    form.append(make("button", {}, "Ask"), output);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      output.hidden = false;
      output.textContent = await shown(addressOf(path, given, form)).catch((error) => String(error));
    });
  }
  section.append(form, answers(about.responses, all));
  return section;
}

function shapes(all) {
  const made = Object.entries(all.components?.schemas ?? {}).filter(([, schema]) => schema.properties).map(([name, schema]) =>
    make("details", { id: `shape-${name}` }, make("summary", {}, make("code", {}, name)), table(
      ["field", "type"],
      Object.entries(schema.properties).map(([field, one]) => [make("code", {}, field), typeOf(one, all)]),
    )),
  );
  return make("section", {}, make("h2", {}, "Shapes of answers"), ...made);
}

async function show() {
  const all = await (await fetch("openapi.json")).json();
  const operations = Object.entries(all.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ path, method, about: methods[method] })),
  );
  const links = operations.map(({ path, method, about }) =>
    make("li", {}, make("a", { href: `#${about.operationId}` }, `${method.toUpperCase()} ${path}`)),
  );
  document.querySelector("#contents").append(make("ul", {}, ...links));
  const main = document.querySelector("#operations");
  main.append(...operations.map(({ path, method, about }) => operation(path, method, about, all)), shapes(all));
  main.setAttribute("aria-busy", "false");
  document.title = `${all.info.title} ${all.info.version}: interface`;
}

show().catch((error) => {
  const message = document.querySelector("#message");
  message.textContent = `The description of the interface cannot be read: ${error.message}`;
  message.hidden = false;
});
