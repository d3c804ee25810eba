// Talks to the agent as a terminal does: an event stream in, lines out (docs/guide/api.md).
"use strict";

const [box] = document.getElementsByClassName("chats");
const at = (id) => document.getElementById(id);
const [log, talk, doing, text, link, form, tray, picked] = ["log", "talk", "doing", "text", "link", "say", "files", "picked"].map(at);
const { chat, agent } = box.dataset;
const base = `/api/chat/${encodeURIComponent(chat)}`;
const working = new Set(); // runs in progress
const drafts = new Map(); // run id → its words so far
const sent = new Map(); // the id of a message that the server may not show yet → its line, and when it was taken
const given = new Map(); // the id of a message → the list of its files, with pictures
const open = new Map(); // receipt → the message, whose buttons can be pressed
const heardOf = new Set(); // receipts of messages that were heard, for those that are said again
const choice = box.dataset.guest ? {} : { agent }; // a guest chooses no agent
const hasTouch = matchMedia("(pointer: coarse)").matches; // its keyboard has no Shift with Enter
const field = hasTouch ? log : text; // on a phone a keyboard would cover the conversation
const wait = (ms) => new Promise((go) => setTimeout(go, ms));
const items = (query) => [...talk.querySelectorAll(query)];

let isAtEnd = true; // whoever has scrolled back stays there
let seenAt = 0; // pixels from the top
log.addEventListener("scroll", () => {
  const isNear = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  // What grows leaves the end below the window, too: only a way up is the person's.
  if (isNear || log.scrollTop < seenAt) isAtEnd = isNear;
  seenAt = log.scrollTop;
  at("newest").hidden = isAtEnd;
});
at("newest").addEventListener("click", () => {
  isAtEnd = true;
  showEnd();
});

function showEnd() {
  if (!isAtEnd) return;
  log.scrollTop = document.querySelector(".ask")?.offsetTop ?? log.scrollHeight; // questions are read from the first one
  seenAt = log.scrollTop;
}

const grown = new ResizeObserver(showEnd); // by a line, a picture that is there, a question
for (const one of [log, ...log.children]) grown.observe(one);

function element(tag, facts = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), facts);
  made.append(...inside);
  return made;
}

function image(file) {
  return PICTURES.includes(file?.type) ? element("img", { src: URL.createObjectURL(file), alt: "" }) : "";
}

// A line that the server does not show yet.
function lineOf(role, id, ...inside) {
  const head = element("p", { className: "by" }, element("strong", { textContent: role === "user" ? "You" : agent }));
  return element("li", { className: role, id }, head, ...inside, element("small", { className: "place" }));
}

// Shows an answer in progress as the server formats it; before that, and if it fails, as it is.
async function format(item) {
  item.ariaBusy = "true";
  const body = item.querySelector(".words");
  if (!body.hasChildNodes()) body.textContent = item.dataset.text;
  if (item.isFormatting) return;
  item.isFormatting = true;
  while (item.isConnected && item.formatted !== item.dataset.text) {
    const words = (item.formatted = item.dataset.text);
    const answer = await fetch("/chat/markdown", { method: "POST", body: new URLSearchParams({ text: words }) }).catch(() => null);
    // Whoever is not signed in any more is sent elsewhere.
    const html = answer?.ok && !answer.redirected ? await answer.text().catch(() => null) : null;
    if (!item.ariaBusy) break; // the whole answer has come
    if (html === null) body.textContent = words;
    else body.innerHTML = html;
    body.classList.toggle("plain", html === null);
    addCopies(body);
    // A long text is formatted less often: each time it is all of it.
    await wait(100 + words.length / 10);
  }
  item.isFormatting = false;
}

function addCopies(root) {
  for (const code of root.querySelectorAll("pre")) code.before(element("button", { type: "button", className: "copy", textContent: "Copy" }));
}

async function post(path, body) {
  const answer = await fetch(base + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: answer.statusText }));
    throw Object.assign(new Error(error), { status: answer.status });
  }
}

const newId = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();

// What buttons of this page send is no line of the person.
const AGAIN = /^\/undo [0-9a-f-]{32,} (again|edit\b)/;
const STOP = "stop-"; // the id of what the button Stop sends begins so
const isPressed = (id, line) => id.startsWith(STOP) || AGAIN.test(line);
const STOPS = /^\/stop(all)?\b/i;
let stops = false; // the next answer says what was stopped: the messages say it themselves, also later

function addQuestion(id, line, files) {
  const item = lineOf("user", `say-${id}`, line ? element("pre", { textContent: line }) : "");
  if (files.length) {
    given.set(id, filesList(files));
    item.querySelector(".place").before(given.get(id).cloneNode(true));
  }
  item.dataset.message = id;
  talk.append(item);
  sent.set(id, { item, takenAt: Infinity });
  return item;
}

let posted = Promise.resolve(); // the first request for the message before
let returned = null; // what was typed, if it is what could not be sent

// Sends a message, or gives it back to where it was typed. Returns whether it was sent.
async function say(line, files = [], id = newId()) {
  isAtEnd = true;
  stops ||= STOPS.test(line);
  if (!working.size) doing.textContent = "";
  const item = isPressed(id, line) ? null : addQuestion(id, line, files);
  const body = { message_id: id, text: line, files: files.map(({ ref, name }) => ({ ref, name })), ...choice };
  // Requests may overtake each other: messages wait for those before them. A stop waits for none.
  const first = id.startsWith(STOP) ? post("/messages", body) : (posted = posted.catch(() => {}).then(() => post("/messages", body)));
  for (let attempt = 0; ; attempt += 1) {
    try {
      // The same id again is harmless, so a line whose answer was lost is said once.
      await (attempt ? post("/messages", body) : first);
      if (item) showPlace(item, "");
      if (sent.has(id)) sent.get(id).takenAt = performance.now();
      changed();
      return true;
    } catch (error) {
      const isFinal = error.status >= 400 && error.status < 500;
      if (isFinal || attempt >= 5) {
        item?.remove();
        sent.delete(id);
        // Several come back in the order in which they were typed.
        if (item) returned = text.value = (text.value === returned ? [returned, line] : [line, text.value]).filter(Boolean).join("\n");
        typed();
        if (error.status === 401) await refused(doing);
        else doing.textContent = `Not sent: ${error.status ? error.message : "the gateway does not answer"}`;
        return false;
      }
      if (item) showPlace(item, navigator.onLine ? "sending…" : "sent when this device is online again");
      if (navigator.onLine) await wait(500 * 2 ** attempt);
      else await new Promise((go) => window.addEventListener("online", go, { once: true }));
    }
  }
}

// ---------------------------------------------------------------- files

const attached = new Set(); // what the next message gets: {file, name, ref, chip, done}
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const size = (bytes) => (bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`);

function filesList(files) {
  const all = files.map(({ name, file }) => element("li", {}, image(file), element("bdi", { textContent: name })));
  return element("ul", { className: "files", ariaLabel: "Files" }, ...all);
}

function attach(files) {
  const [most, largest] = [Number(box.dataset.maxFiles), Number(box.dataset.maxBytes)];
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
  const how = element("progress", { max: file.size, value: 0, ariaLabel: `Upload of ${file.name}` });
  const away = element("button", { type: "button", textContent: "✕", ariaLabel: `Remove ${file.name}` });
  const chip = element("li", {}, image(file), element("bdi", { textContent: file.name }), how, away);
  const request = new XMLHttpRequest(); // fetch says nothing of progress
  request.responseType = "json";
  const one = { file, name: file.name, ref: "", chip };
  attached.add(one);
  tray.append(chip);
  const drop = () => {
    request.abort();
    attached.delete(one);
    chip.remove();
    typed();
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
    request.upload.onprogress = ({ loaded }) => (how.value = loaded);
    request.onerror = () => failed("the connection was lost");
    request.onabort = () => resolve(false);
    request.onload = () => {
      const { status, statusText, response } = request;
      if (status === 401) refused(doing);
      if (status !== 200) return failed(status === 401 ? "" : response?.error ?? (statusText || "no answer"));
      Object.assign(one, { ref: response.ref, name: response.name });
      how.replaceWith(element("small", { textContent: size(file.size) }));
      resolve(true);
    };
  });
  request.open("POST", `/chat/files?${new URLSearchParams({ name: file.name.slice(-1000) })}`);
  request.send(file);
  typed();
}

at("attach")?.addEventListener("click", () => picked.click());
picked?.addEventListener("change", () => {
  attach(picked.files);
  picked.value = "";
});
function take(event, files) {
  box.classList.remove("drop");
  if (!files.length) return;
  event.preventDefault();
  attach(files);
}
text.addEventListener("paste", (event) => take(event, event.clipboardData.files));
box.addEventListener("drop", (event) => take(event, event.dataTransfer.files));
box.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  box.classList.add("drop");
});
box.addEventListener("dragleave", ({ relatedTarget }) => box.contains(relatedTarget) || box.classList.remove("drop"));

// ---------------------------------------------------------------- what is done with a message

let edited = null; // the message that the next one replaces
let other = ""; // what was typed before

const said = (item) => item.dataset.text ?? item.querySelector("pre")?.textContent ?? "";

function edit(item) {
  if (!edited) other = text.value;
  const files = item?.querySelector(".files") ? " Its files stay." : "";
  edited = item && { run: runOf(item), message: item.dataset.message ?? "", hasFiles: files !== "" };
  at("cancel").hidden = !item;
  doing.textContent = item ? `Sending replaces your last message and its answer.${files}` : "";
  text.value = item ? said(item) : other;
  typed();
  text.focus();
}

// A message that was dropped is typed again, behind what is typed already.
function refill(item) {
  text.value = [text.value, said(item)].filter(Boolean).join("\n");
  doing.textContent = item.querySelector(".files") ? "Its files have to be attached again." : "";
  typed();
  text.focus();
}

// Lets the agent answer its last turn again, if that is this run; says why it cannot. The gateway has
// its messages: the page sends only what one of them says now.
async function again(run, line, files = []) {
  await refresh();
  const turn = items("[data-run]").filter(({ dataset }) => dataset.run === run);
  if (turn.some((one) => one.matches("[data-last]"))) return say(line, files);
  doing.textContent = `Not sent again: ${turn.length ? "another message came after it" : "it is not stored any more"}`;
  return false;
}

talk.addEventListener("click", async ({ target }) => {
  const copied = target.closest(".copy");
  if (copied) return copy(copied.nextElementSibling.textContent, copied.nextElementSibling, copied);
  const pressed = target.closest("[data-press]");
  if (pressed) return pressButton(pressed);
  const button = target.closest("[data-act]");
  if (!button) return;
  const item = button.closest("li");
  const run = item.dataset.of;
  const { act } = button.dataset;
  if (act === "copy") return copy(said(item), item.querySelector(".words, pre"), button.querySelector("span"));
  if (act === "fork") button.form.elements.run.value = run;
  if (act === "edit" && item.matches(".dropped")) refill(item);
  else if (act === "edit") edit(item);
  if (act !== "retry") return;
  if (items("li.user").some(({ dataset }) => dataset.of === run)) await again(run, `/undo ${run} again`);
  else doing.textContent = "This answers no message of this conversation.";
});
at("cancel").addEventListener("click", () => edit(null));

// ---------------------------------------------------------------- buttons

// The buttons below messages that nobody has pressed yet. An approval of this conversation is no
// message: it has a card with its own.
function addButtons(lines) {
  const all = [...lines.querySelectorAll("li.assistant")];
  for (const [receipt, { text: words, run_id, buttons }] of open) {
    const isIt = ({ dataset: { text, of } }) => text === words && (!run_id || !of || of === run_id);
    const item = all.find(({ dataset }) => dataset.receipt === receipt) ?? all.findLast(isIt);
    if (!item || item.querySelector(".buttons")) continue;
    const place = element("div", { className: "actions buttons" });
    for (const { text: label, data } of buttons.flat()) {
      const button = element("button", { type: "button", textContent: label });
      Object.assign(button.dataset, { press: receipt, data });
      place.append(button);
    }
    item.querySelector(".place").before(place);
  }
}

async function pressButton(button) {
  const { press: receipt, data } = button.dataset;
  button.disabled = true;
  await post("/press", { press_id: newId(), receipt, data, ...choice }).catch((error) => {
    button.disabled = false;
    doing.textContent = `Not pressed: ${error.message}`;
  });
}

// The answer to a question of a tool.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.getAttribute("action") !== "/chat/decide") return;
  event.preventDefault();
  const facts = { method: "POST", headers: { accept: "application/json" }, body: new URLSearchParams(new FormData(form)), redirect: "manual" };
  const answer = await fetch(form.action, facts).catch(() => null);
  if (answer?.status === 401) refused(doing);
  else if (answer?.type !== "opaqueredirect") doing.textContent = "The answer was not taken. Try again.";
  else isAnswered = true;
});
let isAnswered = false; // until the question has gone: then the next one has the focus

function focusNext() {
  if (!isAnswered || document.activeElement !== document.body) return;
  isAnswered = false;
  (document.querySelector(".ask button") ?? field).focus();
}

// ---------------------------------------------------------------- notifications

// On phones only a service worker may show them; it is not waited for, as its scope does not have this page.
const notify = at("notify");
const NOTIFY = "goclaw-notify";
let worker = null;

function setNotify(isOn) {
  notify.ariaPressed = String(isOn);
  worker = isOn ? navigator.serviceWorker.register("/static/notify.js") : null;
}

let unread = 0; // messages that came while nobody saw the page

function showTitle() {
  if (!document.hidden) unread = 0;
  document.title = `${unread ? `(${unread}) ` : ""}${at("called").textContent.trim()} · goclaw`;
}
document.addEventListener("visibilitychange", showTitle);

async function notifyOf(words, tag) {
  unread += 1;
  showTitle();
  if (!document.hidden || !worker) return;
  const facts = { body: words.slice(0, 300), tag, icon: "/static/icon-192.png", data: location.href };
  await (await worker).showNotification(at("called").textContent, facts);
}

if (isSecureContext && "Notification" in window && navigator.serviceWorker) {
  notify.hidden = false;
  setNotify(localStorage.getItem(NOTIFY) !== null && Notification.permission === "granted");
  notify.addEventListener("click", async () => {
    const isWanted = !worker;
    const isOn = isWanted && (await Notification.requestPermission()) === "granted";
    if (isWanted && !isOn) doing.textContent = "This browser allows this page no notifications.";
    setNotify(isOn);
    if (isOn) localStorage.setItem(NOTIFY, "yes");
    else localStorage.removeItem(NOTIFY);
  });
}

// ---------------------------------------------------------------- events

const events = {
  run_started: ({ run_id, messages }) => {
    doing.textContent = "The agent is working…";
    working.add(run_id);
    for (const item of items("[data-message]")) if (messages.includes(item.dataset.message)) begin(item, run_id);
    changed();
  },
  line_received: ({ text: line }) => {
    stops ||= STOPS.test(line);
    if (AGAIN.test(line)) for (const item of items("[data-message]")) delete item.dataset.of; // they wait again
    changed();
  },
  run_text: ({ run_id, text: words }) => {
    // What was interrupted is said again: by the run that goes on, or after a reconnection.
    for (const [run, { isStale }] of drafts) if (isStale && drafts.delete(run)) for (const item of items(`[data-of="${run}"][aria-busy]`)) item.remove();
    drafts.set(run_id, { words: (drafts.get(run_id)?.words ?? "") + words });
    showDraft(talk, run_id);
  },
  run_tool: ({ name, ok }) => {
    doing.textContent = ok === null ? `The agent uses ${name}…` : "The agent is working…";
    changed();
  },
  run_waiting: ({ text: line }) => {
    doing.textContent = line || "The agent is working…";
  },
  run_ended: ({ run_id, outcome }) => {
    doing.textContent = "";
    working.delete(run_id);
    const draft = drafts.get(run_id);
    if (draft && outcome === "interrupted") draft.isStale = true;
    else if (draft) draft.endedAt = performance.now();
    changed();
  },
  said: ({ receipt, text: words, run_id, file, buttons, replaces }) => {
    const isOfStop = stops && !run_id && !replaces; // a question that is stopped says it, too
    if (isOfStop) [stops, doing.textContent] = [false, words];
    else if (!heardOf.has(receipt)) notifyOf(words || file?.name || "", receipt);
    heardOf.add(receipt);
    if (replaces) open.delete(replaces);
    if (buttons.length) open.set(receipt, { text: words, run_id, buttons });
    post("/confirm", { receipt }).catch(() => {});
    changed();
  },
  open_buttons: ({ message }) => {
    open.set(message.receipt, message);
    changed();
  },
  buttons_used: ({ message }) => {
    open.delete(message);
    changed();
  },
  press_answered: ({ text: words }) => {
    if (words) doing.textContent = words;
  },
};

// ---------------------------------------------------------------- the conversation

// The server makes it, as after a reload. Here only what it does not know is added: messages on their
// way to it, the words of answers in progress, and buttons.

const runOf = ({ dataset }) => dataset.of ?? dataset.tools;

// An answer in progress, divided by its calls as the server divides it later.
function showDraft(lines, run) {
  const own = [...lines.children].filter((one) => runOf(one) === run && !one.ariaBusy);
  const chars = [...drafts.get(run).words]; // as the server counts them
  let [since, number] = [0, 0];
  for (const call of [...own, null]) {
    const until = call ? Number(call.dataset.at) : chars.length;
    if (!(until > since && until <= chars.length)) continue;
    const words = chars.slice(since, until).join("");
    since = until;
    if (!words.trim()) continue;
    const id = `assistant-${run}${number ? `.${number}` : ""}`;
    const old = at(id);
    const item = (lines === talk ? old : old?.cloneNode(true)) ?? lineOf("assistant", id, element("div", { className: "words plain" }));
    if (number++) item.querySelector(".by")?.remove();
    item.className = call ? "" : "assistant";
    Object.assign(item.dataset, { of: run, text: words });
    if (item.parentNode !== lines) {
      if (call) call.before(item);
      else if (own.length) own.at(-1).after(item);
      else lines.append(item);
    }
    format(item);
  }
}

function showLines(lines, askedAt) {
  const all = [...lines.children];
  for (const [run, { isStale, endedAt }] of drafts) {
    const stored = all.filter(({ dataset }) => dataset.of === run);
    // What was stopped may be stored without an answer.
    const isOver = stored.some((one) => one.matches(".assistant") || one.querySelector(":scope > :is(.words, .problem, .hint)"));
    const isLost = isStale && at("waits").dataset.busy !== "yes";
    if (isOver || isLost || askedAt - endedAt > 5000) drafts.delete(run);
    else showDraft(lines, run);
  }
  for (const [id, { item, takenAt }] of sent) {
    const run = item.dataset.of;
    const isThere = all.some(({ dataset }) => dataset.message === id || (run && dataset.of === run));
    // A command may be stored a moment after it was taken.
    if (isThere || askedAt - takenAt > 2000) sent.delete(id);
    else lines.append(item.cloneNode(true));
  }
  for (const item of all.filter(({ dataset }) => dataset.message)) {
    const { message } = item.dataset;
    const run = at(item.id)?.dataset.of;
    if (run) begin(item, run);
    // The server has their names until a run has taken them.
    if (given.has(message)) item.querySelector(".files")?.replaceWith(given.get(message).cloneNode(true));
  }
  // A message that is stored with its answer is the same line.
  for (const here of items("[data-message][data-of]")) {
    const stored = lines.querySelector(`[id="user-${here.dataset.of}"]`);
    if (stored && !at(stored.id)) here.id = stored.id;
  }
  addButtons(lines);
  prepare(lines);
  showTimes(lines);
  lines.replaceChildren(...lines.children);
  if (talk.hasChildNodes() && !lines.hasChildNodes()) doing.textContent = "This conversation was deleted.";
  morph(talk, lines);
  for (const run of drafts.keys()) showDraft(talk, run);
}

// The run of a message has begun, also if the server did not know it yet.
function begin(item, run) {
  item.dataset.of ??= run;
  showPlace(item, "");
}

function prepare(lines) {
  for (const item of lines.querySelectorAll("li.user, li.assistant")) if (!item.querySelector(".acts")) item.append(at("acts").content.cloneNode(true));
  for (const body of lines.querySelectorAll(".words")) if (!body.querySelector(".copy")) addCopies(body);
}

let most = 50; // lines of the history
at("earlier").addEventListener("click", () => {
  most *= 4;
  refresh();
});

let reading = null; // until the newest lines are shown
let isStale = false;

function refresh() {
  isStale = true;
  return (reading ??= read().finally(() => (reading = null)));
}

async function read() {
  while (isStale) {
    isStale = false;
    const askedAt = performance.now();
    const answer = await fetch(`/chat/talk?${new URLSearchParams({ name: chat, most })}`).catch(() => null);
    if (answer?.status === 401 || answer?.redirected) return refused(doing);
    const html = answer?.ok ? await answer.text().catch(() => null) : null;
    if (html === null) return soon();
    showLines(element("template", { innerHTML: html }).content, askedAt);
    at("earlier").parentElement.hidden = !answer.headers.has("x-earlier");
    showStop();
    await wait(100);
  }
  // What is shown without the server is shown until it knows better.
  if ([...sent.values()].some(({ takenAt }) => takenAt < Infinity) || [...drafts.values()].some(({ endedAt }) => endedAt)) soon();
}

let later = 0;

function soon() {
  clearTimeout(later);
  later = setTimeout(refresh, 1000);
}

function changed() {
  showStop();
  refresh();
  soon();
}

function showPlace(item, words) {
  item.classList.toggle("waits", words !== "");
  item.querySelector(".place").textContent = words;
}

// Send becomes Stop while something runs; what is typed can be sent meanwhile.
function showStop() {
  const isBusy = working.size > 0 || at("waits").dataset.busy === "yes";
  box.classList.toggle("busy", isBusy);
  const focused = document.activeElement;
  at("stop").hidden = !isBusy;
  at("send").hidden = isBusy && !text.value.trim() && !attached.size;
  if (focused.hidden) field.focus();
}

// The list shows what has the words in its search; Enter searches what was said.
function filter() {
  const { value, defaultValue } = at("find");
  const words = value === defaultValue ? "" : value.trim().toLowerCase(); // that was searched
  for (const one of at("list").querySelectorAll("li")) one.hidden = !one.textContent.toLowerCase().includes(words);
  for (const day of at("list").querySelectorAll("h3")) day.hidden = !day.nextElementSibling.querySelector("li:not([hidden])");
  at("untitled").hidden = !words || at("list").querySelector("li:not([hidden])") !== null;
  if (at("fruitless")) at("fruitless").hidden = words !== "";
}
at("chats").addEventListener("input", ({ target }) => target.id === "find" && filter());

document.addEventListener("part", () => {
  focusNext();
  showTitle();
  filter();
  refresh();
});

function connected() {
  // The end of a run may have been missed, and what is in progress comes again.
  doing.textContent = "";
  for (const draft of drafts.values()) draft.isStale = true;
  for (const some of [working, open]) some.clear();
  changed();
  return ["live", false];
}

const heard = Object.entries(events).map(([name, act]) => [name, ({ data }) => act(JSON.parse(data))]);
const lost = () => (doing.textContent = navigator.onLine ? "There is no connection to the gateway. It is tried again." : "This device is offline.");
listen(() => `${base}/events`, Object.fromEntries(heard), { link, opened: connected, lost, also: doing, isKept: true });

// ---------------------------------------------------------------- what is typed

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const run = edited?.run;
  const head = run ? `/undo ${run} edit ${edited.message}`.trim() + "\n" : "";
  const most = Number(box.dataset.maxChars) - head.length;
  const line = text.value.trim();
  if ([...line].length > most) {
    doing.textContent = `Not sent: the message has ${[...line].length.toLocaleString()} characters; the most is ${most.toLocaleString()}.`;
    return;
  }
  const waiting = [...attached].filter(({ ref }) => !ref);
  if (waiting.length) {
    doing.textContent = "The message is sent when its files are uploaded…";
    const done = await Promise.all(waiting.map((one) => one.done));
    if (done.includes(false)) return;
    doing.textContent = "";
  }
  const files = [...attached];
  if (!line && !files.length && !(run && edited.hasFiles)) return;
  if (run && !(await again(run, head + line, files))) return;
  if (edited) edit(null);
  else text.value = "";
  suggest();
  attached.clear();
  tray.replaceChildren();
  typed();
  if (run || (await say(line, files))) return;
  for (const one of files) {
    attached.add(one);
    tray.append(one.chip);
  }
  typed();
});

// Arrows choose a command, Tab or Enter takes it.
const commands = at("commands");
const nameOf = (one) => one.id.replace("command-", "/");

function choose(one) {
  for (const each of commands.children) each.ariaSelected = String(each === one);
  text.setAttribute("aria-activedescendant", one?.id ?? "");
  one?.scrollIntoView({ block: "nearest" });
}

function suggest() {
  const name = text.value.toLowerCase();
  for (const one of commands.children) one.hidden = !name || !nameOf(one).startsWith(name);
  const first = commands.querySelector("li:not([hidden])");
  commands.hidden = !first;
  choose(first);
}

function fill(one) {
  text.value = `${nameOf(one)} `;
  typed();
  suggest();
  text.focus();
}

// Returns whether a key was for the list.
function isOfList({ key, shiftKey }) {
  const all = [...commands.querySelectorAll("li:not([hidden])")];
  const chosen = all.findIndex((one) => one.ariaSelected === "true");
  if (commands.hidden || chosen < 0) return false;
  const way = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (way) choose(all.at((chosen + way) % all.length));
  else if (key === "Escape") commands.hidden = true;
  else if ((key === "Tab" && !shiftKey) || (key === "Enter" && nameOf(all[chosen]) !== text.value)) fill(all[chosen]);
  else return false;
  return true;
}

commands.addEventListener("click", ({ target }) => fill(target.closest("li")));
text.addEventListener("input", suggest);

// What is typed outlives a reload and a new sign-in.
const draft = `draft:${chat}`;
function typed() {
  const [chars, most] = [text.value.length, Number(box.dataset.maxChars)];
  at("count").textContent = chars > 0.9 * most ? `${chars.toLocaleString()} of ${most.toLocaleString()} characters` : "";
  at("count").classList.toggle("problem", chars > most);
  text.rows = Math.min(12, text.value.split("\n").length); // where field-sizing is not known
  showStop();
  const kept = edited ? other : text.value; // a page that is loaded again edits nothing
  try {
    if (kept) sessionStorage.setItem(draft, kept);
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
text.addEventListener("input", typed);
text.addEventListener("keydown", (event) => {
  if (isOfList(event)) return event.preventDefault();
  if (event.key === "Escape" && edited) edit(null);
  const last = event.key === "ArrowUp" && !text.value && items("li.user").at(-1)?.querySelector("[data-act=edit]");
  if (last && last.checkVisibility()) {
    event.preventDefault();
    last.click();
  }
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || hasTouch) return;
  event.preventDefault();
  form.requestSubmit();
});
log.addEventListener("click", ({ target }) => {
  if (!("fill" in target.dataset)) return;
  text.value = target.textContent;
  typed();
  text.focus();
});
at("stop").addEventListener("click", () => say("/stop", [], STOP + newId()));
talk.replaceChildren(...talk.children); // without the space between lines, which are compared one by one
prepare(talk);
form.hidden = false;
// What a form has done is seen in the conversation.
setTimeout(() => document.querySelector("main > .notice")?.remove(), 6000);
typed();
at("list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
if (!hasTouch) text.focus();
