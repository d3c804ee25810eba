// Adds new log lines to the page, which the server renders.
"use strict";

const MOST = 1000; // lines in the page; the oldest leave
const box = document.getElementById("lines");
const list = box.firstElementChild;
const pause = document.getElementById("pause");
const waiting = document.getElementById("waiting-lines");
const none = document.getElementById("no-lines");
const isNewestLast = box.dataset.order === "oldest";

let position = box.dataset.place; // where the next lines begin
let held = []; // lines that came while paused, the newest last

function isAtEnd() {
  return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
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

function address() {
  const next = new URL(box.dataset.log, location.href);
  next.searchParams.set("after", position);
  return next;
}

const opened = () => [pause.ariaPressed === "true" ? "paused" : "live", false];
const events = {
  lines: ({ data, lastEventId }) => {
    position = lastEventId;
    take(data);
  },
};
const tell = listen(address, events, { link: document.getElementById("link"), opened });

pause.addEventListener("click", () => {
  const isPaused = pause.ariaPressed !== "true";
  pause.ariaPressed = String(isPaused);
  if (!isPaused) held.splice(0).forEach(show);
  waiting.textContent = "";
  tell(...opened());
});
pause.hidden = false;
if (isNewestLast) box.scrollTop = box.scrollHeight;
