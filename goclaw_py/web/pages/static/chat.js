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

let isAtEnd = true; // whoever has scrolled back stays there
log.addEventListener("scroll", () => (isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40));

function showEnd() {
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function add(role, content) {
  document.getElementById("begin")?.remove();
  const item = document.createElement("li");
  item.className = role;
  const head = document.createElement("p");
  const who = document.createElement("strong");
  who.textContent = role;
  const body = document.createElement(role === "assistant" ? "div" : "pre");
  if (role === "assistant") body.className = "words plain";
  body.textContent = content;
  head.append(who);
  item.append(head, body);
  talk.append(item);
  showEnd();
  return item;
}

// Shows the text of an answer as the server formats it. Before that, and if it fails, it is shown
// as it is. `isWhole` is false while it grows.
async function format(item, words, isWhole) {
  item.dataset.text = words;
  item.ariaBusy = String(!isWhole);
  const body = item.querySelector(".words");
  if (!body.hasChildNodes()) body.textContent = words;
  if (item.dataset.formatting) return;
  item.dataset.formatting = "yes";
  for (let shown = null; shown !== item.dataset.text; ) {
    shown = item.dataset.text;
    const answer = await fetch("/chat/markdown", { method: "POST", body: new URLSearchParams({ text: shown }) }).catch(() => null);
    // Whoever is not signed in any more is sent elsewhere.
    const html = answer?.ok && !answer.redirected ? await answer.text().catch(() => null) : null;
    if (html === null) body.textContent = shown;
    else body.innerHTML = html;
    body.classList.toggle("plain", html === null);
    showEnd();
    // A long text is formatted less often while it grows: each time it is all of it.
    if (item.ariaBusy === "true") await new Promise((go) => setTimeout(go, 100 + shown.length / 10));
  }
  delete item.dataset.formatting;
  addCopies(body);
  showEnd();
}

// A button above each block of code.
function addCopies(root) {
  for (const code of root.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      // A browser has a clipboard for pages by TLS and of this machine; the selection is there always.
      const isDone = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
      button.textContent = isDone ? "Copied" : "Selected";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    code.before(button);
  }
}

// A card for a tool call that starts; the card of one that has returned gets its result.
function showTool(run, name, ok) {
  let cards = [...talk.querySelectorAll("[data-tools]")].find((item) => item.dataset.tools === run);
  if (!cards) {
    cards = document.createElement("li");
    cards.className = "tools";
    cards.dataset.tools = run;
    const item = growing.get(run);
    if (item) item.before(cards);
    else talk.append(cards);
  }
  let card = [...cards.querySelectorAll("[data-running]")].find((one) => one.dataset.running === name);
  if (!card || ok === null) {
    card = document.getElementById("tool").content.firstElementChild.cloneNode(true);
    card.dataset.running = name;
    card.querySelector("strong").textContent = name;
    // A guest's page has no link to the run.
    const link = card.querySelector("a");
    if (link) {
      link.href = `/runs/${encodeURIComponent(run)}`;
      link.textContent = run.slice(0, 13);
    }
    cards.append(card);
  }
  if (ok !== null) {
    delete card.dataset.running;
    const badge = card.querySelector(".badge");
    badge.textContent = ok ? "ok" : "failed";
    badge.className = `badge ${ok ? "good" : "bad"}`;
  }
  showEnd();
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
  isAtEnd = true;
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
    (item) => item.dataset.run === run && item.dataset.text === words,
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
    let item = growing.get(run_id);
    if (!item) growing.set(run_id, (item = add("assistant", "")));
    format(item, (item.dataset.text ?? "") + words, false);
  },
  run_tool: ({ run_id, name, ok }) => {
    doing.textContent = ok === null ? `The agent uses ${name}…` : "The agent is working…";
    showTool(run_id, name, ok);
  },
  run_ended: ({ run_id, outcome }) => {
    doing.textContent = outcome === "completed" ? "" : `The last run: ${outcome.replaceAll("_", " ")}.`;
    const item = growing.get(run_id);
    if (item) {
      item.dataset.draft = run_id;
      format(item, item.dataset.text, true);
    }
    growing.delete(run_id);
  },
  said: ({ receipt, text: words, run_id }) => {
    if (!shown.has(receipt)) {
      shown.add(receipt);
      // The message replaces what was streamed of it.
      for (const draft of talk.querySelectorAll("[data-draft]")) if (draft.dataset.draft === run_id) draft.remove();
      const item = run_id && growing.get(run_id);
      if (item) {
        item.remove();
        growing.set(run_id, null);
      }
      if (!isThere(run_id, words)) format(add("assistant", ""), words, true);
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
for (const body of talk.querySelectorAll(".words")) addCopies(body);
form.hidden = false;
text.focus();
showEnd();
