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
const asked = new Map(); // id of a message from here → its element
const questions = new Map(); // run id → the element of what it answers
const agent = box.dataset.agent;
const choice = box.dataset.guest ? {} : { agent }; // a guest chooses no agent

let isAtEnd = true; // whoever has scrolled back stays there
log.addEventListener("scroll", () => (isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40));
log.addEventListener("load", () => showEnd(), true); // a picture takes its room when it is there

function showEnd() {
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function add(role, content) {
  document.getElementById("begin")?.remove();
  const item = document.createElement("li");
  item.className = role;
  const head = document.createElement("p");
  const who = document.createElement("strong");
  who.textContent = { user: "You", assistant: agent }[role] ?? role;
  const body = document.createElement(role === "assistant" ? "div" : "pre");
  if (role === "assistant") body.className = "words plain";
  body.textContent = content;
  head.append(who);
  item.append(head);
  if (content || role === "assistant") item.append(body);
  talk.append(item);
  showEnd();
  return item;
}

// An answer; it says what it answers if other messages stand between.
function addAnswer(run) {
  const question = questions.get(run);
  const last = [...talk.querySelectorAll("li.user")].at(-1);
  const item = add("assistant", "");
  if (question && question !== last) {
    const quote = document.createElement("blockquote");
    quote.className = "question";
    quote.textContent = question.dataset.said;
    item.firstElementChild.after(quote);
  }
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
    throw Object.assign(new Error(error), { status: answer.status });
  }
}

const newId = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();

// Sends a message; what is refused comes back to where it was typed. Returns whether it was taken.
async function say(line, files = []) {
  isAtEnd = true;
  const item = add("user", line);
  item.dataset.said = line || files.map(({ name }) => name).join(", ");
  if (files.length) item.append(filesList(files.map(({ name, file }) => ({ name, address: picture(file) }))));
  const id = newId();
  asked.set(id, item);
  const body = { message_id: id, text: line, ...choice };
  if (files.length) body.files = files.map(({ ref, name }) => ({ ref, name }));
  for (let attempt = 0; ; attempt += 1) {
    try {
      // The same id again is harmless, so a line whose answer was lost is said once.
      await post("/messages", body);
      return true;
    } catch (error) {
      const isFinal = error.status >= 400 && error.status < 500;
      if (isFinal || attempt >= 5) {
        item.remove();
        if (line !== "/stop") text.value = [line, text.value].filter(Boolean).join("\n");
        keepDraft();
        if (error.status === 401) await refused(doing);
        else doing.textContent = `Not sent: ${error.message}`;
        return false;
      }
      await new Promise((go) => setTimeout(go, 500 * 2 ** attempt));
    }
  }
}

// ---------------------------------------------------------------- files

const attached = new Set(); // what the next message gets: {name, file, ref, chip, request}
const tray = document.getElementById("files");
const picked = document.getElementById("picked");
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const picture = (file) => (PICTURES.includes(file?.type) ? URL.createObjectURL(file) : "");

function size(bytes) {
  return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

// The files of a message; those with an address are pictures, with a link they can be saved.
function filesList(files) {
  const list = document.createElement("ul");
  list.className = "files";
  list.ariaLabel = "Files";
  for (const { name, address, link } of files) {
    const place = document.createElement(link ? "a" : "span");
    if (link) {
      place.href = link;
      if (address) place.target = "_blank";
      else place.download = "";
    }
    if (address) {
      const image = new Image();
      image.src = address;
      image.alt = name;
      place.append(image);
    }
    const label = document.createElement("bdi");
    label.textContent = name;
    place.append(label);
    const item = document.createElement("li");
    item.append(place);
    list.append(item);
  }
  return list;
}

function attach(files) {
  const most = Number(box.dataset.maxFiles);
  const largest = Number(box.dataset.maxBytes);
  for (const file of files) {
    if (!most) doing.textContent = "This chat takes no files.";
    else if (attached.size >= most) doing.textContent = `A message may have at most ${most} files.`;
    else if (!file.size) doing.textContent = `${file.name} is empty.`;
    else if (file.size > largest) doing.textContent = `${file.name} has ${size(file.size)}; the most is ${size(largest)}.`;
    else upload(file);
  }
  text.focus();
}

function upload(file) {
  const chip = document.createElement("li");
  const label = document.createElement("bdi");
  label.textContent = file.name;
  const how = document.createElement("progress");
  how.max = file.size;
  how.value = 0;
  how.ariaLabel = `Upload of ${file.name}`;
  const away = document.createElement("button");
  away.type = "button";
  away.textContent = "✕";
  away.ariaLabel = `Remove ${file.name}`;
  if (PICTURES.includes(file.type)) {
    const image = new Image();
    image.src = URL.createObjectURL(file);
    image.alt = "";
    chip.append(image);
  }
  chip.append(label, how, away);
  const request = new XMLHttpRequest();
  const one = { file, name: file.name, ref: "", chip, request };
  attached.add(one);
  tray.append(chip);
  const drop = () => {
    request.abort();
    attached.delete(one);
    chip.remove();
  };
  away.addEventListener("click", () => {
    drop();
    text.focus();
  });
  one.done = new Promise((resolve) => {
    const failed = (why) => {
      if (attached.has(one) && why) doing.textContent = `${file.name} was not attached: ${why}`;
      drop();
      resolve(false);
    };
    request.upload.addEventListener("progress", ({ loaded }) => (how.value = loaded));
    request.addEventListener("load", () => {
      if (request.status === 200) {
        const stored = JSON.parse(request.responseText);
        one.ref = stored.ref;
        one.name = stored.name;
        const note = document.createElement("small");
        note.textContent = size(file.size);
        how.replaceWith(note);
        resolve(true);
        return;
      }
      failed(request.status === 401 ? "" : reason(request));
      if (request.status === 401) refused(doing);
    });
    request.addEventListener("error", () => failed("the connection was lost"));
    request.addEventListener("abort", () => resolve(false));
  });
  request.open("POST", `/chat/files?${new URLSearchParams({ name: file.name.slice(-1000) })}`);
  request.send(file);
}

function reason({ responseText, statusText }) {
  try {
    return JSON.parse(responseText).error;
  } catch {
    return statusText || "no answer";
  }
}

document.getElementById("attach")?.addEventListener("click", () => picked.click());
picked?.addEventListener("change", () => {
  attach(picked.files);
  picked.value = "";
});
text.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  attach(event.clipboardData.files);
});
box.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  box.classList.add("drop");
});
box.addEventListener("dragleave", ({ relatedTarget }) => box.contains(relatedTarget) || box.classList.remove("drop"));
box.addEventListener("drop", (event) => {
  box.classList.remove("drop");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  attach(event.dataTransfer.files);
});

// ---------------------------------------------------------------- buttons

// The buttons below a message. What an approval asks stands above the input line, with its own.
function addButtons(item, receipt, rows) {
  const all = rows.flat().filter(({ data }) => !data.startsWith("approval:"));
  if (!all.length) return;
  const place = document.createElement("div");
  place.className = "actions buttons";
  place.dataset.receipt = receipt;
  for (const { text: label, data } of all) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      button.disabled = true;
      post("/press", { press_id: newId(), receipt, data, ...choice }).catch((error) => {
        button.disabled = false;
        doing.textContent = `Not pressed: ${error.message}`;
      });
    });
    place.append(button);
  }
  item.append(place);
  showEnd();
}

const buttonsOf = (receipt) => [...talk.querySelectorAll("[data-receipt]")].filter((one) => one.dataset.receipt === receipt);

// The answer to a question of a tool; the live part then has one less.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("action") !== "/chat/decide") return;
  event.preventDefault();
  for (const button of form.parentElement.querySelectorAll("button")) button.disabled = true;
  const answer = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(new FormData(form)),
    redirect: "manual",
  }).catch(() => null);
  if (answer?.type === "opaqueredirect") return;
  for (const button of form.parentElement.querySelectorAll("button")) button.disabled = false;
  if (answer?.status === 401) refused(doing);
  else doing.textContent = "The answer was not taken. Try again.";
});

// ---------------------------------------------------------------- events

// Whether an answer stands in the history already: it was stored before it could be shown.
function isThere(run, words) {
  const found = [...talk.querySelectorAll("[data-run]")].find(
    (item) => item.dataset.run === run && item.dataset.text === words,
  );
  // Each stands for one message.
  if (found) delete found.dataset.run;
  return found;
}

const events = {
  run_started: ({ run_id, messages }) => {
    doing.textContent = "The agent is working…";
    const item = messages.map((id) => asked.get(id)).findLast(Boolean);
    if (item) questions.set(run_id, item);
    growing.set(run_id, null);
  },
  run_text: ({ run_id, text: words }) => {
    let item = growing.get(run_id);
    if (!item) growing.set(run_id, (item = addAnswer(run_id)));
    format(item, (item.dataset.text ?? "") + words, false);
  },
  run_tool: ({ run_id, name, ok }) => {
    doing.textContent = ok === null ? `The agent uses ${name}…` : "The agent is working…";
    showTool(run_id, name, ok);
  },
  run_waiting: ({ text: line }) => {
    doing.textContent = line || "The agent is working…";
  },
  run_ended: ({ run_id, outcome }) => {
    doing.textContent = ["completed", "interrupted"].includes(outcome) ? "" : `The last run: ${outcome.replaceAll("_", " ")}.`;
    const item = growing.get(run_id);
    if (item) {
      item.dataset.draft = run_id;
      format(item, item.dataset.text, true);
    }
    growing.delete(run_id);
  },
  said: ({ receipt, text: words, run_id, file, buttons }) => {
    if (!shown.has(receipt)) {
      shown.add(receipt);
      // The message replaces what was streamed of it.
      for (const draft of talk.querySelectorAll("[data-draft]")) if (draft.dataset.draft === run_id) draft.remove();
      const item = run_id && growing.get(run_id);
      if (item) {
        item.remove();
        growing.set(run_id, null);
      }
      const there = !file && isThere(run_id, words);
      // A file stands below the answer that it came with.
      const last = file && run_id && talk.lastElementChild?.dataset.of === run_id ? talk.lastElementChild : null;
      const answer = there || last || addAnswer(run_id);
      if (run_id) answer.dataset.of = run_id;
      if (!there && words) format(answer, words, true);
      else if (!last && !there) answer.querySelector(".words").remove();
      if (file) answer.append(filesList([fileOf(run_id, file)]));
      addButtons(answer, receipt, buttons);
      showEnd();
    }
    post("/confirm", { receipt }).catch(() => shown.delete(receipt));
  },
  open_buttons: ({ message: { receipt, text: words, run_id, buttons } }) => {
    if (buttonsOf(receipt).length || !buttons.flat().some(({ data }) => !data.startsWith("approval:"))) return;
    const items = [...talk.querySelectorAll("li.assistant")];
    let item = items.findLast((one) => one.dataset.text === words && (!run_id || !one.dataset.run || one.dataset.run === run_id));
    if (!item) format((item = add("assistant", "")), words, true);
    addButtons(item, receipt, buttons);
  },
  buttons_used: ({ message }) => {
    for (const place of buttonsOf(message)) place.remove();
  },
  press_answered: ({ text: words }) => {
    if (words) doing.textContent = words;
  },
};

// How a sent file is shown: a picture, or something to save.
function fileOf(run, { kind, name, mime, path }) {
  if (!run) return { name };
  const link = `/chat/file?${new URLSearchParams({ run, path })}`;
  const isPicture = kind === "photo" || PICTURES.includes(mime);
  return { name, link, address: isPicture ? link : "" };
}

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
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const waiting = [...attached].filter(({ ref }) => !ref);
  if (waiting.length) {
    doing.textContent = "The message is sent when its files are uploaded…";
    const done = await Promise.all(waiting.map((one) => one.done));
    if (done.includes(false)) return;
    doing.textContent = "";
  }
  const line = text.value.trim();
  const files = [...attached];
  if (!line && !files.length) return;
  text.value = "";
  attached.clear();
  tray.replaceChildren();
  keepDraft();
  if (await say(line, files)) return;
  for (const one of files) {
    attached.add(one);
    tray.append(one.chip);
  }
});

// What is typed outlives a reload and a new sign-in.
const draft = `draft:${box.dataset.chat}`;
function keepDraft() {
  try {
    if (text.value) sessionStorage.setItem(draft, text.value);
    else sessionStorage.removeItem(draft);
  } catch {
    // A browser may have no room for it, or forbid it.
  }
}
try {
  text.value = text.value || (sessionStorage.getItem(draft) ?? "");
} catch {
  // As above.
}
text.addEventListener("input", keepDraft);
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
