// Reads the values of charts aloud and in a line below: of what is pointed at, touched or focused.
"use strict";

// The bars of a chart that stand in front of each other, from left to right.
function columns(chart) {
  const found = new Map();
  for (const bar of chart.querySelectorAll("rect")) {
    const x = bar.x.baseVal.value;
    found.set(x, [...(found.get(x) ?? []), bar]);
  }
  return [...found].sort(([a], [b]) => a - b).map(([, bars]) => bars);
}

const chosen = new WeakMap(); // of each chart the number of the column that is read

function read(chart, wanted) {
  const all = columns(chart);
  const place = Math.max(0, Math.min(all.length - 1, wanted));
  chosen.set(chart, place);
  for (const bar of chart.querySelectorAll("rect")) bar.classList.toggle("read", all[place].includes(bar));
  const [first, ...others] = all[place].map((bar) => bar.textContent.trim());
  const words = [first, ...others.map((text) => text.slice(text.indexOf(": ") + 2))];
  chart.parentElement.querySelector(".reading").textContent = words.join(", ");
}

function point({ target, clientX }) {
  const chart = target.closest?.(".charts svg");
  if (chart) {
    const distance = ([bar]) => {
      const { left, right } = bar.getBoundingClientRect();
      return Math.abs((left + right) / 2 - clientX);
    };
    const all = columns(chart);
    read(chart, all.indexOf(all.reduce((one, other) => (distance(other) < distance(one) ? other : one))));
  }
  const stroke = target.closest?.(".swim a");
  if (stroke) document.querySelector(".reading").textContent = stroke.querySelector("title").textContent;
}

document.addEventListener("part", () => {
  for (const chart of document.querySelectorAll(".charts svg")) if (chosen.has(chart)) read(chart, chosen.get(chart));
});
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("focusin", ({ target }) => {
  const chart = target.closest?.(".charts svg");
  if (chart) read(chart, chosen.get(chart) ?? Infinity);
  else point({ target });
});
document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.(".charts svg");
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (!chart || !step) return;
  event.preventDefault();
  read(chart, (chosen.get(chart) ?? 0) + step);
});
