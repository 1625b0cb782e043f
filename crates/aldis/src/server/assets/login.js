// The way in: by the token, or by a link that works once. What stands behind `#` in a link reaches no
// server and no log, and only a POST uses it up: a program that looks at the link burns nothing.

const form = document.getElementById("form");
const message = document.getElementById("message");

async function logIn(body) {
  message.textContent = "";
  const response = await fetch("/v1/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) {
    message.textContent = answer.error?.message ?? `the server answered ${response.status}`;
    return;
  }
  localStorage.setItem("key", answer.key);
  const next = new URLSearchParams(location.search).get("next") ?? "/";
  // Only a page of this server.
  location.replace(/^\/(?!\/|\\)/.test(next) ? next : "/");
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn({ token: document.getElementById("token").value.trim() });
});

// Also where somebody opens a link on this very page.
function byLink() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname + location.search);
  logIn({ code });
}

addEventListener("hashchange", byLink);
byLink();
