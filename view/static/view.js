// Draws the pictures of a page, follows a mark to its runs, switches parts of a run off, and keeps
// the progress of an experiment fresh. Vega interprets expressions, so the page needs no eval.
"use strict";

const served = document.body.querySelector("header nav") !== null;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function colours() {
  const text = dark.matches ? "#e8e8e8" : "#1c1c1c";
  const line = dark.matches ? "#8a8a8a" : "#6a6a6a";
  return {
    background: "transparent",
    title: { color: text },
    axis: { labelColor: text, titleColor: text, tickColor: line, domainColor: line, gridColor: line },
    legend: { labelColor: text, titleColor: text },
    header: { labelColor: text, titleColor: text },
    text: { color: text },
  };
}

function merged(spec) {
  const own = spec.config || {};
  const config = { ...own };
  for (const [name, values] of Object.entries(colours())) {
    config[name] = typeof values === "string" ? values : { ...own[name], ...values };
  }
  return { ...spec, config };
}

async function draw(figure) {
  const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const place = figure.querySelector(".chart");
  const made = await vegaEmbed(place, merged(spec), {
    mode: "vega-lite",
    ast: true,
    actions: false,
    renderer: "canvas",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  });
  place.view = made.view; // for a look at it from the console
  figure.dataset.drawn = "yes";
  made.view.addEventListener("click", (_, item) => follow(item && item.datum));
}

// The server writes the links of marks (`links.py`): a step of this page, or runs.
function follow(datum) {
  const href = datum && datum.href;
  if (typeof href !== "string") return;
  if (href.startsWith("#step-")) {
    const target = document.getElementById(href.slice(1));
    if (target) target.scrollIntoView();
  } else if (served && href.startsWith("/")) location.assign(href);
}

function drawAll() {
  for (const figure of document.querySelectorAll("figure.picture")) {
    draw(figure).catch((error) => {
      figure.querySelector(".chart").textContent = "This picture could not be drawn: " + error;
    });
  }
}

async function load(place) {
  const answer = await fetch(place.dataset.src);
  const holder = document.createElement("div");
  // The server escapes all stored text in this fragment, and the page's policy runs no script in it.
  holder.innerHTML = await answer.text();
  const opened = place.querySelector("details[open]") !== null;
  place.replaceChildren(...holder.childNodes);
  place.removeAttribute("aria-busy");
  for (const details of place.querySelectorAll("details")) details.open = opened;
  const figure = place.querySelector("figure.picture");
  if (figure) await draw(figure);
}

async function loadAll() {
  for (const place of document.querySelectorAll("[data-src]")) {
    try {
      await load(place);
    } catch (error) {
      place.textContent = "This picture could not be loaded: " + error;
    }
  }
}

// Control characters and marks of direction are shown, not obeyed, as `texts.visible` does.
function visible(text) {
  return text.replace(
    /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu,
    (found) => "[U+" + found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "]",
  );
}

function shown(value) {
  return value === null ? "-" : value.toFixed(3);
}

let asked = 0; // an answer to an earlier question may come after that to a later one

async function whatIf(section) {
  const turn = ++asked;
  const result = section.querySelector("#whatif-result");
  const parts = [...document.querySelectorAll("input.part:checked")].map((each) => each.value);
  for (const each of document.querySelectorAll("input.part")) {
    each.closest("li").classList.toggle("off", each.checked);
  }
  if (!parts.length) {
    result.textContent = "Nothing is switched off.";
    return;
  }
  const query = new URLSearchParams(parts.map((part) => ["part", part]));
  const url = "/api/runs/" + encodeURIComponent(section.dataset.run) + "/without?" + query;
  const response = await fetch(url);
  const found = await response.json();
  if (turn !== asked) return;
  if (!response.ok) {
    result.textContent = visible(found.detail);
    return;
  }
  const lines = [["meter", "with all", "without", "difference", ""]];
  for (const row of found) {
    const numbers = [row.full, row.value, row.difference].map(shown);
    lines.push([row.meter, ...numbers, row.reason || ""]);
  }
  result.replaceChildren("Without " + visible(parts.join(", ")) + ":", table("Values", lines));
  const sampled = found.find((row) => row.answers && row.full_answers);
  if (sampled) result.append(table("Sampled answers", changed(sampled)));
  const greedy = found.find((row) => row.tokens);
  if (greedy) result.append(...answer("Greedy answer without: ", greedy.tokens));
  if (!sampled) {
    const reasons = new Set(found.map((row) => row.answers_reason).filter(Boolean));
    result.append("No sampled answers: " + visible([...reasons][0] || "none were stored"));
  }
}

// The mass of each sampled answer with all evidence and without the parts.
function changed(row) {
  const masses = new Map();
  const right = new Set();
  for (const [place, groups] of [row.full_answers, row.answers].entries()) {
    for (const group of groups) {
      if (!masses.has(group.answer)) masses.set(group.answer, [0, 0]);
      masses.get(group.answer)[place] = group.mass;
      if (group.right) right.add(group.answer);
    }
  }
  const lines = [["answer", "right", "mass with all", "mass without"]];
  for (const [text, both] of masses) {
    lines.push([text || "(empty)", right.has(text) ? "right" : "", ...both.map((mass) => mass.toFixed(2))]);
  }
  return lines;
}

// A greedy answer, its key tokens marked for the eye and named for the ear.
function answer(title, tokens) {
  const text = document.createElement("bdi");
  text.className = "tokens";
  for (const token of tokens) {
    const part = document.createElement(token.key ? "mark" : "span");
    part.textContent = visible(token.text);
    text.append(part);
  }
  const spoken = document.createElement("span");
  spoken.className = "spoken";
  const keys = tokens.filter((token) => token.key).map((token) => token.text.trim());
  spoken.textContent = " key tokens: " + visible(keys.join(", "));
  return [title, text, spoken];
}

function table(title, lines) {
  const made = document.createElement("table");
  made.createCaption().textContent = title;
  for (const [place, cells] of lines.entries()) {
    const row = made.insertRow();
    for (const text of cells) {
      const cell = document.createElement(place ? "td" : "th");
      if (!place) cell.scope = "col";
      const isolated = document.createElement("bdi");
      isolated.textContent = visible(text);
      cell.append(isolated);
      row.append(cell);
    }
  }
  return made;
}

// The places that show how far an experiment is, kept fresh by one stream of the server, or by asking
// again and again where there is none. A page that nobody sees holds no stream: browsers have few.
const PAUSE = 2000;

function told(place, now) {
  const before = place.textContent;
  const left = now.pending + now.running;
  const failed = now.failed && place.id === "progress" ? ", " + now.failed + " failed" : "";
  const done = now.ok + now.failed;
  place.textContent = done.toLocaleString("en") + " of " + (done + left).toLocaleString("en") + failed;
  place.dataset.left = left;
  return place.textContent !== before;
}

function watched() {
  return [...document.querySelectorAll("[data-left]")].filter((place) => Number(place.dataset.left) > 0);
}

let reloading = null; // pictures of large experiments take seconds, so they are made one after the other
let again = false;

function reload() {
  again = true;
  reloading ??= (async () => {
    while (again) {
      again = false;
      await loadAll();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    reloading = null;
  })();
}

function update(name, now) {
  for (const place of watched()) {
    if (place.dataset.experiment === name && told(place, now)) reload();
  }
}

let polling = false;

async function poll() {
  polling = true;
  for (let places = watched(); places.length; places = watched()) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    for (const { dataset } of places) {
      const answer = await fetch("/api/progress/" + encodeURIComponent(dataset.experiment));
      if (!answer.ok) return;
      update(dataset.experiment, await answer.json());
    }
  }
}

function followProgress() {
  const names = watched().map((place) => ["experiment", place.dataset.experiment]);
  if (!names.length || polling) return;
  const stream = new EventSource("/api/events?" + new URLSearchParams(names));
  stream.addEventListener("progress", (event) => {
    const now = JSON.parse(event.data);
    update(now.experiment, now);
  });
  stream.addEventListener("done", () => stream.close());
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) poll();
  });
  document.addEventListener(
    "visibilitychange",
    () => {
      stream.close();
      document.addEventListener("visibilitychange", followProgress, { once: true });
    },
    { once: true },
  );
}

drawAll();
dark.addEventListener("change", drawAll);
if (served) {
  loadAll();
  const section = document.querySelector(".whatif");
  if (section) {
    for (const each of document.querySelectorAll("input.part")) {
      each.addEventListener("change", () => whatIf(section));
    }
  }
  followProgress();
}
