// Talks to the agent as a terminal does: an event stream in, lines out (docs/guide/api.md).
"use strict";

const box = document.querySelector("[data-chat]");
const base = `/api/chat/${encodeURIComponent(box.dataset.chat)}`;
const log = document.getElementById("log");
const talk = document.getElementById("talk");
const doing = document.getElementById("doing");
const text = document.getElementById("text");
const link = document.getElementById("link");
const growing = new Map(); // run id → the element in which its words arrive
const shown = new Set(); // receipts that were shown, for those that are said again

function showEnd() {
  log.scrollTop = log.scrollHeight;
}

function add(role, content) {
  document.getElementById("begin")?.remove();
  const item = document.createElement("li");
  item.className = role;
  const head = document.createElement("p");
  const who = document.createElement("strong");
  who.textContent = role;
  const body = document.createElement("pre");
  body.textContent = content;
  head.append(who);
  item.append(head, body);
  talk.append(item);
  showEnd();
  return body;
}

async function post(path, body) {
  const answer = await fetch(base + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: answer.statusText }));
    throw new Error(error);
  }
}

async function say(line) {
  add("user", line);
  const id = crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();
  for (let attempt = 0; ; attempt += 1) {
    try {
      // The same id again is harmless, so a line whose answer was lost is said once.
      await post("/messages", { message_id: id, text: line });
      return;
    } catch (error) {
      if (attempt >= 5) {
        add("problem", `Not taken: ${error.message}`);
        return;
      }
      await new Promise((go) => setTimeout(go, 500 * 2 ** attempt));
    }
  }
}

// Whether an answer stands in the history already: it was stored before it could be shown.
function isThere(run, words) {
  const found = [...talk.querySelectorAll("[data-run]")].find(
    (item) => item.dataset.run === run && item.classList.contains("assistant") && item.querySelector("pre").textContent === words,
  );
  // Each stands for one message.
  if (found) delete found.dataset.run;
  return Boolean(found);
}

const events = {
  run_started: ({ run_id }) => {
    doing.textContent = "The agent is working…";
    growing.set(run_id, null);
  },
  run_text: ({ run_id, text: words }) => {
    let body = growing.get(run_id);
    if (!body) growing.set(run_id, (body = add("assistant", "")));
    body.textContent += words;
    showEnd();
  },
  run_tool: ({ name }) => {
    doing.textContent = `The agent uses ${name}…`;
  },
  run_ended: ({ run_id, outcome }) => {
    doing.textContent = outcome === "completed" ? "" : `The run was ${outcome.replaceAll("_", " ")}.`;
    const body = growing.get(run_id);
    if (body) body.parentElement.dataset.draft = run_id;
    growing.delete(run_id);
  },
  said: ({ receipt, text: words, run_id }) => {
    if (!shown.has(receipt)) {
      shown.add(receipt);
      // The message replaces what was streamed of it.
      for (const draft of talk.querySelectorAll("[data-draft]")) if (draft.dataset.draft === run_id) draft.remove();
      const body = run_id && growing.get(run_id);
      if (body) {
        body.parentElement.remove();
        growing.set(run_id, null);
      }
      if (!isThere(run_id, words)) add("assistant", words);
    }
    post("/confirm", { receipt }).catch(() => shown.delete(receipt));
  },
};

let source = null;
let again = 0;
let left = false;

function listen() {
  left = false;
  source = new EventSource(`${base}/events`);
  source.onopen = () => {
    // The end of a run may have been missed.
    doing.textContent = "";
    link.textContent = "live";
    link.classList.remove("lost");
  };
  source.onerror = async () => {
    const isOver = source.readyState === EventSource.CLOSED;
    // Where the reason is known already it stays.
    if (!isOver || !link.firstElementChild) link.textContent = "reconnecting…";
    link.classList.add("lost");
    if (!isOver) return;
    const mine = source;
    const wait = await refused(link);
    // Who leaves the page has closed it meanwhile, who came back has another.
    if (mine === source && !left) again = setTimeout(listen, wait);
  };
  for (const [name, act] of Object.entries(events)) source.addEventListener(name, ({ data }) => act(JSON.parse(data)));
}

window.addEventListener("pagehide", () => {
  left = true;
  clearTimeout(again);
  source.close();
});
// Back from another page, as it was left.
window.addEventListener("pageshow", ({ persisted }) => persisted && listen());
listen();

const form = document.getElementById("say");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const line = text.value.trim();
  if (!line) return;
  text.value = "";
  say(line);
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
document.getElementById("stop").addEventListener("click", () => say("/stop"));
form.hidden = false;
text.focus();
showEnd();
