// Asks the server, and follows what it decides.

// The half of the login that is not in the cookie: other ports of this host get the cookie, too.
const key = () => localStorage.getItem("key") ?? "";

function toLogin() {
  const next = location.pathname + location.search;
  location.assign(next === "/" ? "/login" : `/login?next=${encodeURIComponent(next)}`);
}

export async function ask(method, path, body) {
  const headers = method === "GET" ? { "x-aldis-key": key() } : {
    "x-aldis-key": key(),
    "content-type": "application/json",
    "idempotency-key": crypto.randomUUID?.() ?? String(Math.random()),
  };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (response.status === 401) toLogin();
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
  return answer;
}

export async function text(path) {
  const response = await fetch(path, { headers: { "x-aldis-key": key() } });
  if (response.status === 401) toLogin();
  const answer = await response.text();
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return answer;
}

// Reads server-sent events by fetch, because an EventSource cannot send the key.
export async function* events(path, signal) {
  const response = await fetch(path, { headers: { "x-aldis-key": key() }, signal });
  if (response.status === 401) toLogin();
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const members = new Map(part.split("\n").map((line) => line.split(/: (.*)/s, 2)));
      yield { event: members.get("event") ?? "", data: members.get("data") ?? "" };
    }
  }
}

export const runPath = (run) => `/v1/runs/${encodeURIComponent(run)}`;

// Offers text as a file.
export function save(name, content, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
