// Adds new log lines to the page, which the server renders.
"use strict";

const MOST = 1000; // lines in the page; the oldest leave
const box = document.getElementById("lines");
const list = box.firstElementChild;
const pause = document.getElementById("pause");
const waiting = document.getElementById("waiting-lines");
const none = document.getElementById("no-lines");
const state = document.getElementById("link");
const isNewestLast = box.dataset.order === "oldest";

let position = box.dataset.place; // where the next lines begin
let stream = null;
let again = 0;
let tries = 0;
let held = []; // lines that came while paused, the newest last

function isAtEnd() {
  return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}

function tell(text, isLost) {
  state.textContent = pause.ariaPressed === "true" && !isLost ? "paused" : text;
  state.classList.toggle("lost", isLost);
}

function show(html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  showTimes(fresh.content);
  const follows = isNewestLast && isAtEnd();
  if (isNewestLast) list.append(fresh.content);
  else list.prepend(fresh.content);
  while (list.childElementCount > MOST) (isNewestLast ? list.firstElementChild : list.lastElementChild).remove();
  none.hidden = true;
  if (follows) box.scrollTop = box.scrollHeight;
}

function take(html) {
  if (pause.ariaPressed !== "true") return show(html);
  held.push(html);
  // Some hundred lines each: more would not be shown in any case.
  if (held.length > MOST) held.shift();
  const count = held.reduce((sum, one) => sum + one.split("<li ").length - 1, 0);
  waiting.textContent = `${count} new`;
}

function listen() {
  if (stream) return;
  const address = new URL(box.dataset.log, location.href);
  address.searchParams.set("after", position);
  stream = new EventSource(address);
  stream.onopen = () => tell("live", false);
  stream.onerror = () => {
    const isOver = stream?.readyState === EventSource.CLOSED;
    if (!isOver || !state.firstElementChild) tell("reconnecting…", true);
    if (!isOver) return;
    leave();
    const mine = (tries += 1);
    refused(state).then((wait) => {
      if (mine === tries && !document.hidden) again = setTimeout(listen, wait);
    });
  };
  stream.addEventListener("lines", ({ data, lastEventId }) => {
    position = lastEventId;
    take(data);
  });
}

function leave() {
  tries += 1;
  clearTimeout(again);
  stream?.close();
  stream = null;
}

pause.addEventListener("click", () => {
  const isPaused = pause.ariaPressed !== "true";
  pause.ariaPressed = String(isPaused);
  if (!isPaused) held.splice(0).forEach(show);
  waiting.textContent = "";
  tell("live", false);
});
pause.hidden = false;
if (isNewestLast) box.scrollTop = box.scrollHeight;
// A page that nobody sees costs the gateway nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", () => document.hidden || listen());
if (!document.hidden) listen();
