// Keeps the live part of a page up to date, and shows times in the zone of whoever looks.
// Every page works without it: it is rendered by the server, and actions are plain forms.
"use strict";

// ---------------------------------------------------------------- times

// A time is shown as an age, the exact time on hover. A press on it, or the button at the end of
// the page, shows exact times, for fingers and keyboards. The browser remembers the button.
const AGES = [[1, "s", 60], [60, "min", 120], [3600, "h", 48], [86400, "d", Infinity]];
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const SECOND = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const MINUTE = new Intl.DateTimeFormat(undefined, { timeStyle: "short", hourCycle: "h23" });
const EXACT = "goclaw-exact-times";
let isExact = false;
try {
  isExact = localStorage.getItem(EXACT) !== null;
} catch {
  // A browser may keep nothing.
}

function age(seconds) {
  const count = (size) => Math.round(Math.abs(seconds) / size);
  const [size, unit] = AGES.find(([size, , below]) => count(size) < below);
  if (!count(size)) return "now";
  const text = `${count(size)} ${unit}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

function clock(moment, isDated) {
  const text = SECOND.format(moment);
  const isToday = moment.toDateString() === new Date().toDateString();
  if (isToday && !isDated) return text;
  return moment.getFullYear() === new Date().getFullYear() ? `${DAY.format(moment)} ${text}` : FULL.format(moment);
}

function showTime(element) {
  const moment = new Date(element.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  const local = FULL.format(moment);
  let ago = age((Date.now() - moment.getTime()) / 1000);
  if ("lasting" in element.dataset) ago = ago.replace(" ago", "");
  const kind = element.dataset;
  const both = `${ago} (${local})`;
  const text = "clock" in kind ? clock(moment, kind.clock === "dated") : "exact" in kind ? both : isExact !== ("turned" in kind) ? local : ago;
  if (element.textContent !== text) element.textContent = text;
  element.title = text === both ? moment.toISOString() : text === local ? ago : `${local} (${moment.toISOString()})`;
}

function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) showTime(element);
  let day = new Date().toDateString();
  for (const element of root.querySelectorAll(":is(text, title)[data-clock]")) {
    const { unit, words = "" } = element.dataset;
    const moment = new Date(element.dataset.clock);
    const format = { second: SECOND, day: DAY }[unit] ?? MINUTE;
    // The first label of another day has its date.
    const date = unit === "minute" && moment.toDateString() !== day ? `${DAY.format(moment)} ` : "";
    if (unit === "minute") day = moment.toDateString();
    element.textContent = words + (unit === "moment" ? clock(moment) : date + format.format(moment));
  }
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[datetime]:not([data-clock])")) showTime(element);
}, 1000);

// ---------------------------------------------------------------- answers to forms

// The answer to a form, such as one that was refused, stands in the history as the page of the form:
// nothing is sent again by a reload, or by a way back to it.
if (document.querySelector("[data-posted]") && document.referrer.startsWith(location.origin)) history.replaceState(null, "", document.referrer);

// ---------------------------------------------------------------- forms whose text is not lost

// A form that was sent after the sign-in had expired is not saved. Its fields are kept in this tab,
// and are there again when the sign-in leads back to its page. Whoever leaves what is not saved is
// asked by the browser.
function keepForm(form) {
  const typed = () => JSON.stringify([...new FormData(form)].filter(([name]) => form.elements.namedItem(name)?.type !== "hidden"));
  let saved = form.querySelector("[aria-invalid]") ? "" : typed();
  const kept = "form " + location.pathname + location.search.replace(/[?&]notice=[^&]*/, "");
  const text = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  if (text && new URLSearchParams(location.search).get("notice") === "welcome") {
    for (const [name, value] of JSON.parse(text)) {
      const field = form.elements.namedItem(name);
      if (field?.type === "checkbox") field.checked = true;
      else if (field && field.type !== "hidden") field.value = value;
    }
  }
  form.addEventListener("submit", () => {
    saved = typed();
    sessionStorage.setItem(kept, saved);
  });
  window.addEventListener("beforeunload", (event) => typed() !== saved && event.preventDefault());
}

document.addEventListener("click", ({ target }) => {
  const element = target.closest?.("time[datetime]");
  if (!element || element.closest("a, button, summary, label")) return;
  element.toggleAttribute("data-turned");
  showTime(element);
});

const footer = document.getElementById("times");
if (footer) {
  const button = footer.querySelector("button");
  footer.querySelector("span").textContent = ZONE;
  button.ariaPressed = String(isExact);
  button.addEventListener("click", () => {
    isExact = !isExact;
    button.ariaPressed = String(isExact);
    try {
      if (isExact) localStorage.setItem(EXACT, "yes");
      else localStorage.removeItem(EXACT);
    } catch {
      // It holds for this page.
    }
    for (const element of document.querySelectorAll("time[data-turned]")) delete element.dataset.turned;
    showTimes(document);
  });
  // A page without times of its own has perhaps days of another zone.
  const hasTimes = () => (footer.hidden = !document.querySelector("time[datetime], [data-clock]"));
  document.addEventListener("part", hasTimes);
  hasTimes();
}

// A field for an instant is in the zone of the times around it, and is sent with its zone.
const FIELD = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });
for (const field of document.querySelectorAll("[data-instant]")) {
  const text = field.value.trim();
  const moment = new Date(/(z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text.replace(" ", "T")}Z`);
  if (text && !Number.isNaN(moment.getTime())) field.value = FIELD.format(moment);
  field.form.addEventListener("formdata", ({ formData }) => {
    const typed = field.value.trim().replace(" ", "T");
    const instant = new Date(typed.length === 10 ? `${typed}T00:00` : typed);
    if (typed && !Number.isNaN(instant.getTime())) formData.set(field.name, instant.toISOString());
  });
}
for (const place of document.querySelectorAll("[data-zone]")) place.textContent = ZONE;
for (const field of document.querySelectorAll("[data-own-zone]")) field.value = ZONE;

// ---------------------------------------------------------------- the connection

// A browser gives up a stream for good where something else answers: a proxy, or the gateway when
// the sign-in has ended. Says so in each of the places; returns whether the sign-in has ended.
async function refused(...places) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "manual" }).catch(() => null);
  if (answer?.type !== "opaqueredirect") return false;
  for (const place of places) {
    const way = document.createElement("a");
    way.href = location.href;
    // An invited person cannot sign in again: the page behind it says what to do.
    way.textContent = document.body.className === "guest" ? "Signed out" : "Signed out: sign in again";
    place?.replaceChildren(way);
  }
  return true;
}

// Follows a stream of events, again after it was lost. What it says in `link` comes from `opened`: a
// text, and whether that is bad news; `also` is told of the end of the sign-in. Returns the function
// that says it. A page that nobody sees costs the gateway nothing, unless its stream `isKept`.
function listen(address, events, { link = null, opened = () => ["live", false], lost = () => {}, also = null, isKept = false }) {
  let source = null;
  let again = 0;
  let tries = 0;
  const isWanted = () => isKept || !document.hidden;
  const say = (text, isLost) => {
    if (!link) return;
    if (link.textContent !== text) link.textContent = text;
    link.classList.toggle("lost", isLost);
  };
  const open = () => {
    if (source) return;
    source = new EventSource(address());
    source.onopen = () => say(...opened());
    source.onerror = () => {
      const isOver = source?.readyState === EventSource.CLOSED;
      // Where the reason is known already it stays.
      if (!isOver || !link?.firstElementChild) lose();
      if (!isOver) return;
      close();
      const mine = (tries += 1);
      refused(link, also).then((isOut) => {
        if (mine === tries && isWanted()) again = setTimeout(open, isOut ? 15000 : 3000);
      });
    };
    for (const [name, act] of Object.entries(events)) source.addEventListener(name, act);
  };
  const lose = () => {
    say(navigator.onLine ? "reconnecting…" : "offline", true);
    lost();
  };
  const close = () => {
    tries += 1; // a try that is being prepared is over, too
    clearTimeout(again);
    source?.close();
    source = null;
  };
  document.addEventListener("visibilitychange", () => (isWanted() ? open() : close()));
  window.addEventListener("pagehide", close);
  window.addEventListener("offline", lose);
  // A browser may not notice for minutes that the connection from before is gone.
  window.addEventListener("online", () => {
    close();
    if (isWanted()) open();
  });
  window.addEventListener("pageshow", () => isWanted() && open());
  if (isWanted()) open();
  return say;
}

// ---------------------------------------------------------------- dropdowns

document.addEventListener("keydown", ({ key }) => {
  const opened = key === "Escape" && document.querySelector("details.dropdown[open]");
  if (!opened) return;
  opened.open = false;
  opened.querySelector("summary").focus();
});

// ---------------------------------------------------------------- the live part

// Makes `old` look like `fresh` and keeps what is the same, so that focus, selection, scroll
// positions and opened details stay.
function morph(old, fresh) {
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  let here = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const match = wanted.id ? known.get(wanted.id) : here && same(here, wanted) ? here : null;
    if (!match) {
      old.insertBefore(wanted, here);
      continue;
    }
    if (match !== here) old.insertBefore(match, here);
    else here = here.nextSibling;
    update(match, wanted);
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function same(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && !one.id && !other.id;
}

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  // What the person has opened or typed is theirs.
  const kept = old.nodeName === "DETAILS" ? ["open"] : old.type !== "hidden" && ["INPUT", "TEXTAREA", "SELECT"].includes(old.nodeName) ? ["value", "checked"] : [];
  if (old.nodeName === "TIME" && old.dateTime === fresh.dateTime) return;
  if (old.nodeName === "OUTPUT") return; // a script writes it
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name) && !(old.nodeName === "TIME" && name === "title")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!kept.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morph(old, fresh);
}

// Shows a new state of the live part, and the numbers in the menu that came with it.
function show(part, fresh) {
  showTimes(fresh);
  sortTables(fresh);
  for (const { dataset, value } of fresh.querySelectorAll("[data-counts]"))
    for (const count of document.querySelectorAll(`[data-count="${dataset.counts}"]`)) count.textContent = value;
  // What belongs to other places of the page.
  for (const one of fresh.querySelectorAll("template[data-into]")) {
    one.remove();
    show(document.getElementById(one.dataset.into), one.content);
  }
  morph(part, fresh);
}

function follow(part) {
  // In the chat it tells of the stream of messages.
  const link = document.querySelector("[data-chat]") ? null : document.getElementById("link");
  const address = new URL(part.dataset.live, location.href);
  address.searchParams.set("zone", ZONE);
  let away = ""; // why there is nothing new; the same reason is not sent again
  const events = {
    part: ({ data }) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = data;
      show(part, fresh.content);
      document.dispatchEvent(new Event("part"));
      away = "";
      say("live", false);
    },
    away: ({ data }) => say((away = data), true),
  };
  const say = listen(() => address, events, { link, opened: () => [away || "live", away !== ""] });
}

// ---------------------------------------------------------------- tables

// A table with data-sorts is sorted by the head that is pressed: the rows that are shown. The order
// is kept when the live part brings new rows, and in the address: sort=NAME:COLUMN, with :down for
// the largest first; links to other pages of the list and its filters keep it. A head with data-selects gets a checkbox that sets all those of that name.
const orders = new Map(); // of each table by its name: [column, descending]
for (const one of new URL(location.href).searchParams.get("sort")?.split(",") ?? []) {
  const [name, column, way] = one.split(":");
  orders.set(name, [Number(column), way === "down"]);
}

const order = () => [...orders].map(([name, [column, isDown]]) => `${name}:${column}${isDown ? ":down" : ""}`).join(",");

function sorted(link) {
  const address = new URL(link);
  address.searchParams.set("sort", order());
  return address;
}

function valueOf(row, column) {
  const cell = row.cells[column];
  const time = cell?.querySelector("time");
  return cell?.dataset.value ?? (time ? String(Date.parse(time.dateTime)) : cell?.textContent.trim()) ?? "";
}

function compare(one, other) {
  const [a, b] = [Number(one), Number(other)];
  if (one !== "" && other !== "" && !Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  return one.localeCompare(other, undefined, { numeric: true });
}

function sortTables(root) {
  for (const table of root.querySelectorAll("[data-sorts]")) {
    const name = table.dataset.sorts;
    const isPart = "part" in table.dataset; // of a longer list
    const [column, isDown] = orders.get(name) ?? [];
    const body = table.tBodies[0];
    for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
      const { selects } = head.dataset;
      if (selects && !head.firstElementChild?.type)
        head.replaceChildren(Object.assign(document.createElement("input"), { type: "checkbox", id: `all-${selects}`, ariaLabel: "Select all" }));
      if (selects || isPart || head.querySelector(".hidden")) continue; // no order: buttons, checkboxes
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.dataset.sort = `${name}:${place}`;
      head.replaceChildren(button);
      button.dataset.order = place !== column ? "none" : isDown ? "descending" : "ascending";
      head.setAttribute("aria-sort", button.dataset.order);
    }
    if (isPart || column === undefined) continue;
    const rows = [...body.children];
    rows.sort((one, other) => compare(valueOf(one, column), valueOf(other, column)) * (isDown ? -1 : 1));
    body.append(...rows);
  }
}

document.addEventListener("click", ({ target }) => {
  const link = target.closest?.("main a[href]");
  if (link?.pathname === location.pathname && link.search && orders.size) link.href = sorted(link.href);
  const sort = target.closest?.("button[data-sort]")?.dataset.sort;
  if (!sort) return;
  const [name, place] = sort.split(":");
  const column = Number(place);
  const [before, isDown] = orders.get(name) ?? [];
  orders.set(name, [column, before === column && !isDown]);
  sortTables(document);
  history.replaceState(history.state, "", sorted(location.href));
  document.querySelector(`button[data-sort="${sort}"]`)?.focus();
});

document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method === "get" && orders.size) formData.set("sort", order());
});

// ---------------------------------------------------------------- the timeline

// A drag over the timeline shows the chosen time. Its bars are links: after a drag they lead nowhere.
function zoomable() {
  let drag = null; // the picture and the place where the drag began, from 0 to 1
  let isOver = false;
  const at = (picture, x) => {
    const box = picture.getBoundingClientRect();
    return Math.min(1, Math.max(0, (x - box.left) / box.width));
  };
  const time = (picture, share) => {
    const [since, until] = [picture.dataset.since, picture.dataset.until].map((one) => Date.parse(one));
    return new Date(since + share * (until - since)).toISOString().slice(0, 19).replace("T", " ");
  };
  const end = () => {
    document.querySelector(".zoom")?.remove();
    drag = null;
  };
  document.addEventListener("pointerdown", ({ target, clientX, button }) => {
    const picture = button === 0 ? target.closest?.("[data-zoom]") : null;
    isOver = false;
    // The live part may change the picture meanwhile, and the time that it shows.
    if (picture) drag = { id: picture.id, from: time(picture, at(picture, clientX)), x: clientX };
  });
  document.addEventListener("pointermove", ({ clientX }) => {
    const picture = drag && document.getElementById(drag.id);
    if (!picture || (!isOver && Math.abs(clientX - drag.x) < 6)) return;
    isOver = true;
    const mark = picture.querySelector(".zoom") ?? document.createElementNS(picture.namespaceURI, "rect");
    const [left, right] = [drag.x, clientX].map((x) => at(picture, x)).sort((a, b) => a - b);
    const fields = { class: "zoom", x: `${left * 100}%`, width: `${(right - left) * 100}%`, height: "100%" };
    for (const [name, value] of Object.entries(fields)) mark.setAttribute(name, value);
    picture.append(mark);
  });
  document.addEventListener("pointerup", ({ clientX }) => {
    const picture = drag && isOver && document.getElementById(drag.id);
    if (picture) {
      const [from, to] = [drag.from, time(picture, at(picture, clientX))].sort();
      const place = new URL(picture.dataset.zoom, location.href);
      place.searchParams.set("from", from);
      place.searchParams.set("to", to);
      location.assign(place);
    }
    end();
  });
  document.addEventListener("pointercancel", end);
  document.addEventListener("dragstart", (event) => drag && event.preventDefault());
  document.addEventListener("click", (event) => isOver && event.target.closest?.("[data-zoom]") && event.preventDefault(), true);
}

if (document.querySelector("[data-live^='/live/timeline']")) zoomable();

// The buttons for selected rows say of how many, and do nothing without one. The box for every row,
// also on other pages, has the boxes that are seen ticked, and not one of them less.
function countSelected({ target }) {
  const fields = [...(document.getElementById("selected")?.elements ?? [])];
  const every = fields.find(({ id }) => id === "every");
  const rows = fields.filter((field) => field.type === "checkbox" && field !== every);
  const name = target.closest?.("th")?.dataset.selects;
  if (name) for (const box of document.getElementsByName(name)) box.checked = target.checked;
  if (every && target.type === "checkbox" && !target.checked) every.checked = false;
  if (every?.checked || target === every) for (const box of rows) box.checked = every.checked;
  for (const head of document.querySelectorAll("[data-selects] input")) {
    const boxes = rows.filter((box) => head.id === `all-${box.name}`);
    head.checked = boxes.length > 0 && boxes.every((box) => box.checked);
  }
  const chosen = every?.checked ? Number(every.value) : rows.filter((box) => box.checked).length;
  for (const button of fields.filter(({ name }) => name === "do")) {
    button.disabled = !chosen;
    button.dataset.chosen = chosen;
    button.textContent = button.textContent.replace(/ [\d,]+$/, "") + (chosen ? ` ${chosen.toLocaleString("en")}` : "");
  }
}

document.addEventListener("change", countSelected);
document.addEventListener("part", countSelected);
window.addEventListener("pageshow", countSelected);

// ---------------------------------------------------------------- forms

// For more than one selected row each button asks; for one only the button that deletes.
document.addEventListener("submit", (event) => {
  const { ask, chosen } = event.submitter?.dataset ?? {};
  const isOne = chosen === "1";
  if (!ask || (isOne && !event.submitter.matches(".danger"))) return;
  const things = `${Number(chosen).toLocaleString("en")} ${event.target.dataset.things}${isOne ? "" : "s"}`;
  if (!window.confirm(chosen ? ask.replace("{}", things) : ask)) event.preventDefault();
});

// The theme changes at once, without a new page: somebody may be writing.
document.querySelector("form.theme")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = event.submitter;
  fetch("/theme", { method: "POST", body: new URLSearchParams({ theme: chosen.value }), redirect: "manual" }).catch(() => null);
  if (chosen.value) document.documentElement.dataset.theme = chosen.value;
  else delete document.documentElement.dataset.theme;
  document.querySelector("meta[name=color-scheme]").content = chosen.value || "light dark";
  for (const button of event.target.elements) if (button.type === "submit") button.ariaPressed = String(button === chosen);
});

// A form with data-preview shows in the named element what the server makes of it so far.
function preview(form) {
  const target = document.getElementById(form.dataset.previewInto);
  let timer = 0;
  let last = 0;
  const show = async () => {
    const mine = (last += 1);
    const fields = new URLSearchParams(new FormData(form));
    // An address has no room for long texts, and what a preview is about is short.
    for (const text of form.querySelectorAll("textarea[name]")) fields.delete(text.name);
    try {
      const answer = await fetch(`${form.dataset.preview}?${fields}`, { headers: { accept: "text/html" } });
      const text = await answer.text();
      if (mine !== last) return;
      // Whoever is not signed in any more is sent elsewhere: that is no preview.
      if (!answer.ok || answer.redirected) {
        target.textContent = "There is no preview at the moment.";
        return;
      }
      target.innerHTML = text;
      showTimes(target);
    } catch {
      if (mine === last) target.textContent = "The gateway does not respond.";
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
  // A search came with what it finds; what is wrong stands in the form.
  if (form.method === "post" && !form.querySelector("[aria-invalid]")) show();
}

// A list of time zones is filled here: the browser knows them all.
function offerZones(list) {
  list.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name, name)));
}

// A browser has a clipboard for pages by TLS and of this machine; the selection is there always.
async function copy(words, place, label) {
  if (place.select) place.select();
  else getSelection().selectAllChildren(place);
  const isDone = await navigator.clipboard?.writeText(words).then(() => true, () => false);
  const before = label.textContent;
  label.textContent = isDone ? "Copied" : "Selected";
  setTimeout(() => (label.textContent = before), 2000);
}

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  button.addEventListener("click", () => copy(field.value, field, button));
  button.hidden = false;
}

// A slash leads to the search of the page.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const search = document.querySelector("main input[type=search]");
  if (!search?.checkVisibility()) return;
  event.preventDefault();
  search.focus();
});

// ---------------------------------------------------------------- begin

if (matchMedia("(max-width: 40rem)").matches) for (const one of document.querySelectorAll(".fold:not(:has([aria-invalid]))")) one.open = false;
showTimes(document);
sortTables(document);
// On a phone tabs scroll.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft;
for (const form of document.querySelectorAll("form[data-keep]")) keepForm(form);
// The link from a page of one thing leads to the list as this tab has shown it last.
const above = document.querySelector(".above a");
if (above) above.search = sessionStorage.getItem(above.pathname) ?? "";
else window.addEventListener("pagehide", () => sessionStorage.setItem(location.pathname, location.search));
// What was done is said once, not again after a reload.
const place = new URL(location.href);
if (place.searchParams.has("notice")) {
  place.searchParams.delete("notice");
  history.replaceState(history.state, "", place);
}
for (const form of document.querySelectorAll("form[data-preview]")) preview(form);
for (const list of document.querySelectorAll("datalist[data-zones]")) offerZones(list);
const part = document.querySelector("[data-live]");
if (part?.dataset.live) follow(part);
