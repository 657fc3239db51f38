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

function follow(datum) {
  if (!served || !datum) return;
  const experiment = document.querySelector("[data-experiment]");
  if (datum.run) location.assign("/runs/" + encodeURIComponent(datum.run));
  else if (experiment && (datum.system || datum.hops)) {
    const query = new URLSearchParams({ experiment: experiment.dataset.experiment });
    if (datum.system) query.set("arm", datum.system);
    if (/^\d+$/.test(datum.hops || "")) query.set("hops", datum.hops);
    location.assign("/?" + query);
  } else if (typeof datum.part === "string" || typeof datum.step === "string") {
    const step = parseInt(datum.part || datum.step, 10);
    const target = document.getElementById("step-" + step);
    if (target) target.scrollIntoView();
  }
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
  place.replaceChildren(...holder.childNodes);
  place.removeAttribute("aria-busy");
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

function shown(value) {
  return value === null ? "-" : value.toFixed(3);
}

async function whatIf(section) {
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
  const answer = await fetch(url);
  const found = await answer.json();
  if (!answer.ok) {
    result.textContent = found.detail;
    return;
  }
  const table = document.createElement("table");
  const line = (cells, kind) => {
    const row = table.insertRow();
    for (const text of cells) {
      const cell = document.createElement(kind);
      cell.textContent = text;
      row.append(cell);
    }
  };
  line(["meter", "with all", "without", "difference", ""], "th");
  for (const row of found) {
    const numbers = [row.full, row.value, row.difference].map(shown);
    line([row.meter, ...numbers, row.reason || ""], "td");
  }
  result.replaceChildren("Without " + parts.join(", ") + ":", table);
}

async function watch(place) {
  let left = Number(place.dataset.left);
  const url = "/api/progress/" + encodeURIComponent(place.dataset.experiment);
  while (left > 0) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const answer = await fetch(url);
    if (!answer.ok) return;
    const now = await answer.json();
    const before = left;
    left = now.pending + now.running;
    const failed = now.failed ? ", " + now.failed + " failed" : "";
    place.textContent = now.ok + now.failed + " of " + (now.ok + now.failed + left) + failed;
    if (left !== before) await loadAll();
  }
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
  for (const place of document.querySelectorAll("[data-left]")) watch(place);
}
