// Talks to the agent as a terminal does: an event stream in, lines out (docs/guide/api.md).
"use strict";

const [box] = document.getElementsByClassName("chats");
const at = (id) => document.getElementById(id);
const [log, talk, doing, text, link, form, tray, picked] = ["log", "talk", "doing", "text", "link", "say", "files", "picked"].map(at);
const { chat, agent } = box.dataset;
const base = `/api/chat/${encodeURIComponent(chat)}`;
const growing = new Map(); // run id → the element in which its words arrive
const shown = new Set(); // receipts that were shown, for those that are said again
const choice = box.dataset.guest ? {} : { agent }; // a guest chooses no agent
const hasTouch = matchMedia("(pointer: coarse)").matches; // its keyboard has no Shift with Enter
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
  if (isAtEnd) log.scrollTop = log.scrollHeight;
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

function add(role, content, run = "") {
  at("begin")?.remove();
  const isAnswer = role === "assistant";
  const time = element("time", { dateTime: new Date().toISOString() });
  const facts = element("small", {}, time);
  const page = at("tool").content.querySelector("a"); // a guest's page has no link to the run
  if (isAnswer && run && page) facts.append(" · ", Object.assign(page.cloneNode(), { href: `/runs/${encodeURIComponent(run)}`, textContent: "Run" }));
  showTime(time);
  const head = element("p", { className: "by" }, element("strong", { textContent: isAnswer ? agent : "You" }), " ", facts);
  const item = element("li", { className: role }, head);
  if (content || isAnswer) item.append(element(isAnswer ? "div" : "pre", { className: isAnswer ? "words plain" : "", textContent: content }));
  item.append(element("small", { className: "place" }));
  addActs(item);
  talk.insertBefore(item, isAnswer && run ? behind(run) : null);
  if (run) item.dataset.of = run;
  item.toggleAttribute("data-last", run !== "" && run === lastRun);
  return item;
}

// What follows the next line of a run. It stands above the questions that came after its own, and, of
// a turn that is answered again, above all that was said since.
function behind(run) {
  const own = items(":scope > li").filter((one) => (runOf(one) ?? begun.get(one.dataset.message)) === run);
  let next = own.at(-1)?.nextElementSibling ?? null;
  if (!own.some(({ dataset }) => dataset.again)) while (next && !next.matches(".user")) next = next.nextElementSibling;
  return next;
}

let lastRun = ""; // of the last turn that the agent remembers: only that can be undone

function setLast(run) {
  lastRun = run;
  for (const item of items(":scope > li")) item.toggleAttribute("data-last", run !== "" && item.dataset.of === run);
}

const questionOf = (id) => items("[data-message]").find(({ dataset }) => dataset.message === id);
const said = (item) => item.dataset.text ?? item.querySelector("pre")?.textContent ?? "";

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
    // A long text is formatted less often while it grows: each time it is all of it.
    if (item.ariaBusy === "true") await wait(100 + shown.length / 10);
  }
  delete item.dataset.formatting;
  addCopies(body);
}

// A button above each block of code.
function addCopies(root) {
  for (const code of root.querySelectorAll("pre")) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", () => copy(code.textContent, code, button));
    code.before(button);
  }
}

// A card for a tool call that starts; the card of one that has returned gets its result.
function showTool(run, name, ok, denied) {
  let cards = items("[data-tools]").find((item) => item.dataset.tools === run);
  if (!cards) {
    cards = element("li", { className: "tools" });
    cards.dataset.tools = run;
    const item = growing.get(run);
    talk.insertBefore(cards, item ?? behind(run));
  }
  let card = [...cards.querySelectorAll("[data-running]")].find((one) => one.dataset.running === name);
  if (!card || ok === null) {
    card = at("tool").content.firstElementChild.cloneNode(true);
    card.dataset.running = name;
    card.querySelector("strong").textContent = name;
    // A guest's page has no link to the run.
    const link = card.querySelector("a");
    if (link) link.href = `/runs/${encodeURIComponent(run)}`;
    cards.append(card);
  }
  if (ok !== null) {
    delete card.dataset.running;
    const [words, meaning] = ok ? ["ok", "good"] : denied ? ["denied", "idle"] : ["failed", "bad"];
    Object.assign(card.querySelector(".badge"), { textContent: words, className: `badge ${meaning}` });
  }
}

async function post(path, body) {
  const answer = await fetch(base + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: answer.statusText }));
    throw Object.assign(new Error(error), { status: answer.status });
  }
}

const newId = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();

const FORGET = /^\/(undo|new)\b/;
let forgets = false; // the next answer says what the agent has forgotten
// What buttons of this page send is no line of the person: a turn again, or one message of it edited.
const AGAIN = /^\/undo [0-9a-f-]{32,} (?:again|edit ?(\S*)\n([^]*))$/;
let redone = null; // its match, until the run begins
const STOP = "stop-"; // the id of what the button Stop sends begins so
const isPressed = (id, line) => id.startsWith(STOP) || AGAIN.test(line);
const STOPS = /^\/stop(all)?\b/i;
let stops = false; // the next answer says what was stopped: the messages say it themselves, also later

// A message of the person, with its files.
function addQuestion(id, line, files) {
  const item = add("user", line);
  if (!line) item.dataset.text = files.map(({ name }) => name).join(", ");
  if (files.length) item.lastElementChild.before(filesList(files));
  item.dataset.message = id;
  forgets ||= FORGET.test(line);
  return item;
}

let posted = Promise.resolve(); // the first request for the message before
let returned = null; // what was typed, if it is what could not be sent

// Sends a message; what is refused comes back to where it was typed. Returns whether it was taken.
async function say(line, files = [], id = newId()) {
  isAtEnd = true;
  stops ||= STOPS.test(line);
  const item = isPressed(id, line) ? null : addQuestion(id, line, files);
  const body = { message_id: id, text: line, files: files.map(({ ref, name }) => ({ ref, name })), ...choice };
  // Requests may overtake each other: messages wait for those before them. A stop waits for none.
  const first = id.startsWith(STOP) ? post("/messages", body) : (posted = posted.catch(() => {}).then(() => post("/messages", body)));
  for (let attempt = 0; ; attempt += 1) {
    try {
      // The same id again is harmless, so a line whose answer was lost is said once.
      await (attempt ? post("/messages", body) : first);
      if (item) showPlace(item, "");
      return true;
    } catch (error) {
      const isFinal = error.status >= 400 && error.status < 500;
      if (isFinal || attempt >= 5) {
        item?.remove();
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

// The files of a message: those that are being sent, and those of a run, which can be saved.
function filesList(files) {
  const list = element("ul", { className: "files", ariaLabel: "Files" });
  for (const { name, file, run, kind, mime, path } of files) {
    const isPicture = kind === "photo" || PICTURES.includes(mime);
    const place = element(run ? "a" : "span", {}, image(file));
    if (run) {
      place.href = `/chat/file?${new URLSearchParams({ run, path })}`;
      if (isPicture) place.append(element("img", { src: place.href, alt: name }));
      if (isPicture) place.target = "_blank";
      else place.download = "";
    }
    place.append(element("bdi", { textContent: name }));
    list.append(element("li", {}, place));
  }
  return list;
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
function given(event, files) {
  box.classList.remove("drop");
  if (!files.length) return;
  event.preventDefault();
  attach(files);
}
text.addEventListener("paste", (event) => given(event, event.clipboardData.files));
box.addEventListener("drop", (event) => given(event, event.dataTransfer.files));
box.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  box.classList.add("drop");
});
box.addEventListener("dragleave", ({ relatedTarget }) => box.contains(relatedTarget) || box.classList.remove("drop"));

// ---------------------------------------------------------------- what is done with a message

function addActs(item) {
  item.append(at("acts").content.cloneNode(true));
}

let edited = null; // the message that the next one replaces
let other = ""; // what was typed before

function edit(item) {
  if (!edited) other = text.value;
  edited = item;
  at("cancel").hidden = !item;
  const files = item?.querySelector(".files") ? " Its files stay." : "";
  doing.textContent = item ? `Sending replaces your last message and its answer.${files}` : "";
  text.value = item ? item.querySelector("pre")?.textContent ?? "" : other;
  typed();
  text.focus();
}

// A message that was dropped changes nothing: it is typed again, behind what is typed already.
function refill(item) {
  text.value = [text.value, item.querySelector("pre")?.textContent].filter(Boolean).join("\n");
  doing.textContent = item.querySelector(".files") ? "Its files have to be attached again." : "";
  typed();
  text.focus();
}

// The lines of this conversation as they are stored.
async function stored() {
  const answer = await fetch(location.href);
  if (answer.redirected) throw Object.assign(new Error("signed out"), { status: 401 });
  if (!answer.ok) throw new Error(answer.statusText);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...page.querySelectorAll("#talk > li")];
}

const runOf = ({ dataset }) => dataset.of ?? dataset.tools;

let removed = 0; // turns, by this page
let caught = null; // the end of catching up
const begun = new Map(); // the id of a message → the run that answers it

// Shows what was stored while this page heard nothing, and removes turns that were undone elsewhere.
async function catchUp(isSure = false) {
  const [before, soFar, working] = [items(":scope > li").filter(runOf), removed, new Set(growing.keys())];
  const lines = await stored().catch(() => null);
  if (!lines) return;
  if (removed > soFar) return catchUp(); // it may be what was stored before
  const runs = new Set(lines.map(runOf));
  const gone = before.filter((item) => ![runs, growing, working].some((some) => some.has(runOf(item))));
  if (gone.length && !isSure) {
    await wait(300); // a turn that ends while it is read is in no list for a moment
    return catchUp(true);
  }
  for (const item of gone) item.remove();
  const found = new Set();
  let last = null;
  setLast(lines.find((line) => line.matches("[data-last]"))?.dataset.of ?? "");
  for (const line of lines) {
    const { message } = line.dataset;
    const mine = items(":scope > li").find((item) => {
      if (found.has(item) || item.classList[0] !== line.classList[0]) return false;
      // The run of a message may have begun since the lines were read.
      if (message && item.dataset.message) return item.dataset.message === message;
      if (runOf(item)) return runOf(item) === runOf(line);
      return said(item) === said(line); // its run has begun, or it was dropped
    });
    if (mine && runOf(line) && !runOf(mine)) mine.dataset.of = runOf(line);
    if (mine && line.matches(".dropped")) mine.classList.add("dropped");
    const end = line.querySelector(":scope > :is(.problem, .hint)"); // why there is no answer
    if (stopped.has(runOf(line))) end?.remove(); // this page says so already
    else if (mine && end && !mine.querySelector(":scope > :is(.problem, .hint)")) mine.querySelector(".place")?.before(end);
    if (!mine) {
      at("begin")?.remove();
      if (message && !runOf(line) && begun.has(message)) line.dataset.of = begun.get(message);
      if (last) last.after(line);
      else talk.prepend(line);
      if (!line.dataset.tools) addActs(line);
      for (const body of line.querySelectorAll(".words")) addCopies(body);
      showTimes(line);
    }
    found.add((last = mine ?? line));
  }
  for (const run of stopped.keys()) showStopped(run);
}

// What is not in the answer of a turn is undone with it: why there was none.
function reopen(item) {
  delete item.dataset.of;
  item.classList.remove("dropped");
  item.querySelector(":scope > :is(.problem, .hint)")?.remove();
}

function reword(item, words, files = []) {
  const body = item.querySelector("pre") ?? element("pre");
  body.textContent = words;
  item.querySelector(".by").after(body);
  if (files.length) item.querySelector(".place").before(filesList(files));
}

// Lets the agent answer its last turn again, if that is this run; says why it cannot. The gateway
// has the messages of the turn: the page sends only what one of them says now.
async function again(run, line, files = []) {
  const remembered = async () => (await stored()).filter(({ dataset }) => dataset.run === run);
  try {
    const turn = await remembered();
    if (!turn.some((one) => one.matches("[data-last]"))) throw new Error(turn.length ? "another message came after it" : "it is not stored any more");
    if (!(await say(line, files))) return false;
    for (let attempt = 0; (await remembered()).length; attempt += 1) {
      if (attempt === 10) throw new Error("the agent has not forgotten the last turn");
      await wait(300);
    }
    const [, id, words] = AGAIN.exec(line);
    if (id && questionOf(id)) reword(questionOf(id), words, files);
    removed += 1;
    for (const item of items(":scope > li").filter((one) => runOf(one) === run)) {
      if (item.dataset.message && (id || words === undefined)) reopen(item);
      else item.remove();
      item.dataset.again = "yes";
    }
    caught = catchUp();
    return true;
  } catch (error) {
    if (error.status === 401) await refused(doing);
    else doing.textContent = `Not sent again: ${error.message}`;
    return false;
  }
}

talk.addEventListener("click", async ({ target }) => {
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

// The buttons below a message. An approval has a card with its own.
const isQuestion = (rows) => rows.flat().some(({ data }) => data.startsWith("approval:"));

function addButtons(item, receipt, rows) {
  const all = rows.flat();
  if (!all.length || isQuestion(rows)) return;
  const place = element("div", { className: "actions buttons" });
  place.dataset.receipt = receipt;
  for (const { text: label, data } of all) {
    const button = element("button", { type: "button", textContent: label });
    button.addEventListener("click", () => {
      button.disabled = true;
      post("/press", { press_id: newId(), receipt, data, ...choice }).catch((error) => {
        button.disabled = false;
        doing.textContent = `Not pressed: ${error.message}`;
      });
    });
    place.append(button);
  }
  item.lastElementChild.before(place);
}

const ofReceipt = (query, receipt) => items(`${query}[data-receipt]`).find(({ dataset }) => dataset.receipt === receipt);
// Of a question about a tool call that was answered, its tool and the answer remain.
const ANSWERED = /^(?:🔐|❓)[^\n]*\n\n([^\n]+)[^]*\n\n((?:✅|🚫|⏭|⌛|⏹)[^\n]+)$/;

// The answer to a question of a tool; the live part then has one less.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.getAttribute("action") !== "/chat/decide") return;
  event.preventDefault();
  const facts = { method: "POST", headers: { accept: "application/json" }, body: new URLSearchParams(new FormData(form)), redirect: "manual" };
  const answer = await fetch(form.action, facts).catch(() => null);
  if (answer?.status === 401) refused(doing);
  else if (answer?.type !== "opaqueredirect") doing.textContent = "The answer was not taken. Try again.";
});

// ---------------------------------------------------------------- notifications

// For answers while the page is in the background, after the person has turned them on. On phones
// only a service worker may show them; it is not waited for, as its scope does not have this page.
const notify = at("notify");
const NOTIFY = "goclaw-notify";
let worker = null;

function setNotify(isOn) {
  notify.ariaPressed = String(isOn);
  worker = isOn ? navigator.serviceWorker.register("/static/notify.js") : null;
}

async function notifyOf(words, tag) {
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

// Whether an answer stands in the history already: it was stored before it could be shown.
function isThere(run, words) {
  // One that may have been sent twice begins with a mark.
  const found = items("[data-run]").find((item) => item.dataset.run === run && words.endsWith(item.dataset.text));
  // Each stands for one message.
  if (found) delete found.dataset.run;
  return found;
}

const events = {
  run_started: ({ run_id, messages }) => {
    doing.textContent = "The agent is working…";
    growing.set(run_id, null);
    for (const id of messages) {
      begun.set(id, run_id);
      const item = questionOf(id);
      if (!item) continue;
      reopen(item);
      item.dataset.of = run_id;
      if (redone) item.dataset.again = "yes";
      showPlace(item, "");
    }
    if (redone) {
      const [, id, words] = redone;
      const item = questionOf(id || messages[0]);
      if (item && words !== undefined) reword(item, words);
      redone = null;
      caught = catchUp();
    }
    showStop();
  },
  // Another page of this conversation sends it.
  line_received: ({ message_id, text: line, files }) => {
    stops ||= STOPS.test(line);
    if (isPressed(message_id, line)) {
      redone = AGAIN.exec(line);
      return;
    }
    if (questionOf(message_id)) return;
    addQuestion(message_id, line, files.map((name) => ({ name })));
  },
  run_text: ({ run_id, text: words }) => {
    let item = growing.get(run_id);
    if (!item) growing.set(run_id, (item = add("assistant", "", run_id)));
    format(item, (item.dataset.text ?? "") + words, false);
  },
  run_tool: ({ run_id, name, ok, denied }) => {
    doing.textContent = ok === null ? `The agent uses ${name}…` : "The agent is working…";
    showTool(run_id, name, ok, denied);
  },
  run_waiting: ({ text: line }) => {
    doing.textContent = line || "The agent is working…";
  },
  run_ended: ({ run_id, outcome }) => {
    doing.textContent = "";
    const item = growing.get(run_id);
    if (item) {
      item.dataset.draft = run_id;
      format(item, item.dataset.text, true);
    }
    growing.delete(run_id);
    // A call that was stopped has no result.
    for (const badge of items(`[data-tools="${run_id}"] [data-running] .badge`)) Object.assign(badge, { textContent: "no result", className: "badge idle" });
    showStop();
    if (outcome !== "interrupted") setLast(run_id);
    if (outcome === "cancelled") stopped.set(run_id, at("stopped").content.firstElementChild.cloneNode(true));
    showStopped(run_id);
    // What is stored a moment later: that it has said nothing, or why it failed.
    if (outcome !== "interrupted" && !(outcome === "completed" && item)) setTimeout(() => (caught = catchUp()), 1000);
  },
  said: ({ receipt, text, run_id, file, buttons, replaces, rich }) => {
    const words = text.replace(ANSWERED, "$1: $2");
    const isOfStop = stops && !run_id;
    if (isOfStop) doing.textContent = words;
    if (isOfStop) stops = false;
    if (!shown.has(receipt)) {
      shown.add(receipt);
      if (!isOfStop) notifyOf(words || file?.name || "", receipt);
      const before = replaces && ofReceipt("li", replaces);
      if (before && words.endsWith(": ⏹ Stopped.")) {
        before.remove(); // its turn says so, which is stored now
        caught = catchUp();
      } else if (before) showAgain(before, receipt, words, buttons, rich);
      // A question has a card; its answer then stands where it was asked.
      else if (isQuestion(buttons)) Object.assign(add("assistant", ""), { hidden: true }).dataset.receipt = receipt;
      else if (!isOfStop) {
        showSaid(receipt, words, run_id, file, buttons, rich);
        // The page was left to answer a question: its run may have ended before the page was back.
        if (words !== text) items("li.user").at(-1)?.after(ofReceipt("li", receipt));
      }
    }
    post("/confirm", { receipt }).catch(() => shown.delete(receipt));
    if (!run_id && (forgets || isOfStop)) caught = catchUp();
    forgets = false;
  },
  // Of a message that the page has, or gets as it catches up; one that was undone has gone.
  open_buttons: async ({ message: { receipt, text: words, run_id, buttons } }) => {
    await caught;
    if (ofReceipt(".buttons", receipt) || isQuestion(buttons)) return;
    const isIt = ({ dataset: { text, run } }) => text === words && (!run_id || !run || run === run_id);
    const item = ofReceipt("li", receipt) ?? items("li.assistant").findLast(isIt);
    if (item) addButtons(item, receipt, buttons);
  },
  buttons_used: ({ message }) => {
    ofReceipt(".buttons", message)?.remove();
  },
  press_answered: ({ text: words }) => {
    if (words) doing.textContent = words;
  },
};

const stopped = new Map(); // run id → what stands below its last message, as after a reload

function showStopped(run) {
  const words = stopped.get(run);
  const item = words && items("li.user, li.assistant").findLast((one) => runOf(one) === run);
  const why = words?.querySelector("a"); // a guest's page has no link to the run
  if (why) why.href = `/why?about=${encodeURIComponent(`run:${run}`)}`;
  item?.querySelector(".place").before(words);
}

// A message that takes the place of an earlier one.
function showAgain(item, receipt, words, buttons, rich) {
  item.dataset.receipt = receipt;
  item.hidden = isQuestion(buttons);
  item.querySelector(".buttons")?.remove();
  write(item, words, rich);
  addButtons(item, receipt, buttons);
}

// The answer to a command is shown as it is.
function write(item, words, rich) {
  if (rich) return format(item, words, true);
  item.dataset.text = words;
  Object.assign(item.querySelector(".words"), { className: "words plain", textContent: words });
}

function showSaid(receipt, words, run, file, buttons, rich) {
  // The message replaces what was streamed of it.
  for (const draft of items("[data-draft]")) if (draft.dataset.draft === run) draft.remove();
  const item = run && growing.get(run);
  if (item) {
    item.remove();
    growing.set(run, null);
  }
  const there = !file && isThere(run, words);
  // A file stands below the answer that it came with.
  const last = file && run && talk.lastElementChild?.dataset.of === run ? talk.lastElementChild : null;
  const answer = there || last || add("assistant", "", run);
  answer.dataset.receipt = receipt;
  if (!there && words) write(answer, words, rich);
  else if (!last && !there) answer.querySelector(".words").remove();
  if (file) answer.lastElementChild.before(filesList([{ run, ...file }]));
  addButtons(answer, receipt, buttons);
  showStopped(run);
}

// ---------------------------------------------------------------- what waits

function showPlace(item, words) {
  item.classList.toggle("waits", words !== "");
  item.querySelector(".place").textContent = words;
}

// Send becomes Stop while something runs; what is typed can be sent meanwhile.
function showStop() {
  const isBusy = growing.size > 0 || at("waits").dataset.busy === "yes";
  box.classList.toggle("busy", isBusy);
  at("stop").hidden = !isBusy;
  at("send").hidden = isBusy && !text.value.trim() && !attached.size;
}

// The list shows what has the words that are typed in its search; Enter searches all conversations.
function filter() {
  const { value, defaultValue } = at("find");
  const words = value === defaultValue ? "" : value.trim().toLowerCase(); // that was searched
  for (const one of at("list").querySelectorAll("li")) one.hidden = !one.textContent.toLowerCase().includes(words);
  for (const day of at("list").querySelectorAll("h3")) day.hidden = !day.nextElementSibling.querySelector("li:not([hidden])");
}
at("chats").addEventListener("input", ({ target }) => target.id === "find" && filter());

document.addEventListener("part", () => {
  const places = new Map([...at("waits").children].map((one) => [one.dataset.id, one.textContent]));
  // A message whose run has begun waits no more, whatever was so a moment ago.
  for (const item of items("[data-message]")) {
    const place = (!item.dataset.of && places.get(item.dataset.message)) || "";
    // Its run begins now, or it was dropped.
    if (!place && item.matches(".waits")) setTimeout(() => runOf(item) || (caught = catchUp()), 1000);
    showPlace(item, place);
  }
  showStop();
  filter();
});

function begin() {
  // The end of a run may have been missed, and what is in progress comes again.
  doing.textContent = "";
  for (const item of growing.values()) item?.remove();
  growing.clear();
  showStop();
  caught = catchUp();
  return ["live", false];
}

const heard = Object.entries(events).map(([name, act]) => [name, ({ data }) => act(JSON.parse(data))]);
const lost = () => (doing.textContent = navigator.onLine ? "There is no connection to the gateway. It is tried again." : "This device is offline.");
listen(() => `${base}/events`, Object.fromEntries(heard), { link, opened: begin, lost, also: doing, isKept: true });

// ---------------------------------------------------------------- what is typed

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const run = edited && runOf(edited);
  const head = run ? `/undo ${run} edit ${edited.dataset.message ?? ""}`.trim() + "\n" : "";
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
  if (!line && !files.length && !(run && edited.querySelector(".files"))) return;
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

// The commands that begin with what is typed. Arrows choose one, Tab or Enter takes it.
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
for (const body of items(".words")) addCopies(body);
for (const item of items("li.user, li.assistant")) addActs(item);
setLast(items("[data-last]")[0]?.dataset.of ?? "");
form.hidden = false;
// What a form has done is seen in the conversation.
setTimeout(() => document.querySelector("main > .notice")?.remove(), 6000);
typed();
if (!hasTouch) text.focus(); // on a phone a keyboard would cover the conversation
