"use strict";

// Bytes as spt prints them.
function bytes(n) {
  if (n < 1024) return n + " B";
  let unit = 1024, i = 0;
  while (i < 5 && n >= unit * 1024) { unit *= 1024; i++; }
  let tenths = Math.floor((n * 10 + unit / 2) / unit);
  if (tenths === 10240 && i < 5) { tenths = 10; i++; }
  return Math.floor(tenths / 10) + "." + tenths % 10 + " " + "KMGTPE"[i] + "iB";
}

function tabs() {
  const list = document.querySelector("[role=tablist]");
  if (!list) return;
  const all = [...list.querySelectorAll("[role=tab]")];
  const panel = tab => document.getElementById(tab.getAttribute("aria-controls"));
  const select = chosen => {
    for (const tab of all) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      panel(tab).hidden = !on;
    }
  };
  for (const tab of all) {
    panel(tab).setAttribute("role", "tabpanel");
    panel(tab).setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", () => select(tab));
  }
  list.addEventListener("keydown", event => {
    const at = all.indexOf(document.activeElement), n = all.length;
    const to = { ArrowRight: at + 1, ArrowLeft: at + n - 1, Home: 0, End: n - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    select(all[to % n]);
    all[to % n].focus();
  });
  list.closest("section").classList.add("tabbed");
  list.hidden = false;
  select(all[0]);
}

// What each subtask holds at a parallelism: subtask i of p has the key groups from
// ceil(i * max / p) on.
function held(groups, p) {
  const first = i => Math.ceil(i * groups.length / p);
  return Array.from({ length: p }, (_, i) => groups.slice(first(i), first(i + 1)).reduce((a, b) => a + b, 0));
}

function bars(values) {
  const each = Math.max(1, Math.ceil(values.length / 512));
  const sums = [];
  values.forEach((v, i) => { if (i % each === 0) sums.push(0); sums[sums.length - 1] += v; });
  const top = Math.max(...sums), w = 100 / sums.length;
  return sums.map((v, i) => v > 0 ? `M${(i * w).toFixed(2)} 100v${(-v / top * 100).toFixed(2)}h${w.toFixed(2)}V100z` : "").join("");
}

function sliders() {
  for (const article of document.querySelectorAll(".groups")) {
    const groups = article.dataset.bytes.split(" ").map(Number);
    const input = article.querySelector("input");
    input.disabled = false;
    input.addEventListener("input", () => {
      const p = Number(input.value), all = held(groups, p), sorted = [...all].sort((a, b) => a - b);
      const at = all.indexOf(sorted[p - 1]);
      article.querySelector("output").textContent = p;
      article.querySelector(".held").textContent = `At parallelism ${p}: largest subtask ${bytes(sorted[p - 1])} (${at}), median ${bytes(sorted[Math.floor((p - 1) / 2)])}, smallest ${bytes(sorted[0])}.`;
      article.querySelector(".bars path").setAttribute("d", bars(all));
    });
  }
}

// What is folded is printed too.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));

tabs();
sliders();
