// The model learns: what from, how far it is, and what changed.

import { get, send } from "./api.js";
import { $, ago, h, number, percent, plural, toast } from "./dom.js";

export function learnView(app) {
  const { model } = app;
  const state = h("div", {}), rounds = h("div", {}), windows = h("div", {});
  let status = null, asked = "";
  const element = h("div", { class: "wrap" }, h("h2", {}, "Learn"), state, windows, rounds);
  const draw = async () => {
    const key = `${model.act}|${model.round}|${app.job?.state ?? ""}`;
    drawJob();
    if (key === asked) return;
    asked = key;
    try { status = await get("/api/learning"); } catch { asked = ""; return; }
    drawJob();
    windows.replaceChildren(...(status.stream ? [windowDrop(app), history(status.stream)] : []));
    rounds.replaceChildren(...(status.rounds.length ? [h("h2", {}, "States to go back to"), roundList(status.rounds)] : []));
  };
  app.jobListeners.add(draw);
  return { element, draw, close: () => app.jobListeners.delete(draw) };

  function drawJob() {
    const { job } = app;
    if (job && job.state === "running") {
      let running = state.querySelector(".job");
      if (!running) {
        running = h("div", { class: "job" }, h("p", { class: "step" }), h("progress", { max: "1", "aria-label": "Progress" }), h("p", { class: "soft left" }),
          h("button", { type: "button", onclick: () => send("POST", "/api/jobs/cancel").catch((error) => toast(error.message, { error: true })) }, "Cancel"));
        state.replaceChildren(running);
      }
      running.querySelector(".step").textContent = `${job.what}: ${job.step}`;
      const bar = running.querySelector("progress");
      if (job.fraction === null) bar.removeAttribute("value"); else bar.value = job.fraction;
      running.querySelector(".left").textContent = job.left === null ? `${Math.round(job.elapsed)} s so far` : `about ${Math.max(1, Math.round(job.left))} s left`;
      return;
    }
    if (!status) return;
    const failed = job && job.state === "failed" ? h("p", { class: "note" }, job.error) : null;
    const cancelled = job && job.state === "cancelled" ? h("p", { class: "soft" }, "It was cancelled; everything is as it was.") : null;
    const key = JSON.stringify([job?.state, status.n_labels, status.last?.at, status.can_learn]);
    if (state.dataset.key === key) return;
    state.dataset.key = key;
    state.replaceChildren(h("p", { class: "sentence" }, status.words),
      h("div", { class: "row" }, h("button", { type: "button", class: "primary", disabled: !status.can_learn, onclick: () => start("/api/learn", { by: app.by }) }, `Learn from ${plural(status.n_labels, "label")}`)),
      ...[failed, cancelled, status.last ? beforeAfter(app, status.last) : null].filter(Boolean));
  }

  async function start(path, body) {
    try { app.job = await send("POST", path, body); app.refresh(); } catch (error) { toast(error.message, { error: true }); }
  }

  function roundList(list) {
    return h("ul", { class: "rounds" }, list.map((round) => h("li", {}, h("span", {}, h("bdi", {}, round.what)), h("span", { class: "soft" }, ` ${ago(round.at)}`), h("span", { class: "grow" }),
      round.current ? h("strong", {}, "now") : h("button", { type: "button", class: "quiet", onclick: () => start("/api/back", { to: round.id }) }, "Go back to this"))));
  }
}

function beforeAfter(app, last) {
  const change = (pair) => (pair ? `${percent(pair[0])} → ${percent(pair[1])}` : "not measured");
  return h("section", { class: "card" }, h("h3", {}, "Before and after"),
    h("dl", { class: "pairs" },
      ...(last.n_changed === null ? [] : [h("dt", {}, "Items that changed class"), h("dd", {}, number(last.n_changed)),
      h("dt", {}, "Right among known items, by those held back"), h("dd", {}, change(last.known_accuracy)),
      h("dt", {}, "False alarms"), h("dd", {}, change(last.false_alarm))]),
      last.new_classes.length ? h("dt", {}, "New classes") : null, last.new_classes.length ? h("dd", {}, last.new_classes.join(", ")) : null),
    last.kept ? h("p", {}, last.kept) : null,
    last.classes.length ? h("table", { class: "plain" }, h("caption", {}, "Each known class, by items held back"),
      h("thead", {}, h("tr", {}, ["class", "before", "after"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, last.classes.map(([name, before, after]) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, name)), h("td", {}, before === null ? "–" : percent(before)), h("td", {}, after === null ? "–" : percent(after)))))) : null,
    last.moves.length ? h("table", { class: "plain" }, h("caption", {}, "What moved"),
      h("thead", {}, h("tr", {}, ["from", "to", "items"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, last.moves.map(([from, to, n]) => h("tr", {}, h("td", {}, h("bdi", {}, from)), h("td", {}, h("bdi", {}, to)), h("td", {}, number(n)))))) : null);
}

// A new window: files dropped here, or the path of a folder.
function windowDrop(app) {
  const path = h("input", { type: "text", id: "window-path", placeholder: "/path/to/a/folder or file", size: "40" });
  const budget = h("input", { type: "number", id: "window-budget", min: "0", max: "100000", value: "100" });
  const files = h("input", { type: "file", multiple: true, id: "window-files", onchange: () => upload([...files.files]) });
  const words = h("p", { class: "soft", role: "status" });
  const box = h("section", { class: "card drop", "aria-label": "A new window",
    ondragover: (event) => { event.preventDefault(); box.classList.add("over"); },
    ondragleave: () => box.classList.remove("over"),
    ondrop: async (event) => { event.preventDefault(); box.classList.remove("over"); upload(await dropped(event.dataTransfer)); } },
    h("h3", {}, "A new window"), h("p", { class: "soft" }, "Drop files or a folder here, choose files, or give the path of a folder on this machine."),
    h("div", { class: "row" }, h("label", { for: "window-files" }, "Files"), files),
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); run({ path: path.value.trim() }); } },
      h("label", { for: "window-path" }, "Folder"), path, h("label", { for: "window-budget" }, "Questions"), budget, h("button", { type: "submit" }, "Classify")), words);
  return box;

  async function run(body) {
    try { app.job = await send("POST", "/api/windows", { ...body, budget: Number(budget.value), by: app.by }); app.refresh(); } catch (error) { words.textContent = error.message; }
  }

  async function upload(list) {
    if (!list.length) return;
    try {
      const { id } = await send("POST", "/api/uploads", { n: list.length });
      for (const [i, file] of list.entries()) {
        words.textContent = `${number(i + 1)} of ${plural(list.length, "file")} …`;
        const answer = await fetch(`/api/uploads/${id}/${i}?name=${encodeURIComponent(file.name)}`, { method: "PUT", body: file, headers: { "content-type": "application/octet-stream" } });
        if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `${file.name} was refused`);
      }
      words.textContent = "";
      await run({ upload: id });
    } catch (error) { words.textContent = error.message; }
  }
}

async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const found = [];
  const walk = async (entry) => {
    if (entry.isFile) found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    else {
      const reader = entry.createReader();
      for (;;) {
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!some.length) break;
        for (const each of some) await walk(each);
      }
    }
  };
  for (const entry of entries) await walk(entry);
  return found;
}

function history(stream) {
  const names = Object.keys(stream.classes);
  return h("div", {},
    h("h2", {}, "Windows"),
    h("div", { class: "scroll" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["window", "items", "unknown", "groups", "asked", "labels", "new classes", "right among known", "nothing forgotten"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, stream.windows.map((each) => h("tr", {}, h("th", { scope: "row" }, String(each.window)), ...[each.items, each.unknown, each.groups, each.asked, each.labelled].map((n) => h("td", {}, number(n))),
        h("td", {}, h("bdi", {}, each.new_classes.join(", "))), h("td", {}, each.accuracy === null ? "–" : percent(each.accuracy)), h("td", {}, each.held)))))),
    h("h3", {}, "Known classes"),
    h("div", { class: "scroll" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["class", "since window", "labels", "accuracy on items held back"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, names.map((name) => { const each = stream.classes[name]; return h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, name)), h("td", {}, each.since ? String(each.since) : "the beginning"), h("td", {}, number(each.labels)), h("td", {}, each.estimate === undefined ? "–" : `${percent(each.estimate)} (${percent(each.low)} to ${percent(each.high)})`)); })))));
}
