// The model learns: what from, how far it is, and what changed.

import { get, send } from "./api.js";
import { ago, h, number, percent, plural, table, toast } from "./dom.js";

export function learnView(app) {
  const { model } = app;
  const state = h("div", {}), rounds = h("div", {}), windows = h("div", {});
  let status = null, asked = "", drop = null;
  const element = h("div", { class: "wrap" }, h("h2", {}, "Learn"), state, windows, rounds);
  const draw = async () => {
    const key = `${model.act}|${model.shown}|${app.job?.state ?? ""}`;
    drawJob();
    if (key === asked) return;
    asked = key;
    try { status = await get("/api/learning"); } catch { asked = ""; return; }
    drawJob();
    if (status.stream) {
      if (!Object.keys(status.stream.classes).length) asked = ""; // it is still being read
      drop ??= windowDrop(app); // once, so that what is typed there stays
      windows.replaceChildren(drop, history(status.stream));
    }
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
      ...[failed, cancelled, status.last ? beforeAfter(status.last, Boolean(status.stream)) : null].filter(Boolean));
  }

  async function start(path, body) {
    try { app.job = await send("POST", path, body); app.refresh(); } catch (error) { toast(error.message, { error: true }); }
  }

  function roundList(list) {
    return h("ul", { class: "rounds" }, list.map((round) => h("li", {}, h("span", {}, h("bdi", {}, round.what)), h("span", { class: "soft" }, ` ${ago(round.at)}`), h("span", { class: "grow" }),
      round.current ? h("strong", {}, "now") : h("button", { type: "button", class: "quiet", onclick: () => start("/api/back", { to: round.id }) }, "Go back to this"))));
  }
}

function beforeAfter(last, isStream) {
  const change = (pair) => (pair ? `${percent(pair[0])} → ${percent(pair[1])}` : "not measured");
  const pairs = [];
  if (last.n_changed !== null) pairs.push([isStream ? "Items of the window whose most likely known class changed" : "Items that changed class", number(last.n_changed)]);
  if (!isStream) pairs.push(["Right among known items, by those held back", change(last.known_accuracy)], ["False alarms", change(last.false_alarm)]);
  if (last.new_classes.length) pairs.push(["New classes", last.new_classes.join(", ")]);
  const share = (value) => (value === null ? "–" : percent(value));
  return h("section", { class: "card" }, h("h3", {}, "Before and after"),
    h("dl", { class: "pairs" }, pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    last.kept ? h("p", {}, last.kept) : null,
    last.classes.length ? table(["class", "before", "after"], last.classes.map(([name, before, after]) => [name, share(before), share(after)]), "Right among each known class, by items held back") : null,
    last.moves.length ? table(["from", "to", "items"], last.moves.map(([from, to, n]) => [from, to, number(n)]), "What moved") : null);
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

function history({ windows, classes }) {
  const accuracy = (each) => (each.estimate === undefined ? "–" : `${percent(each.estimate)} (${percent(each.low)} to ${percent(each.high)})`);
  return h("div", {},
    h("h2", {}, "Windows"),
    windows.length ? table(["window", "items", "unknown", "groups", "asked", "labels", "new classes", "right among known", "nothing forgotten"],
      windows.map((each) => [String(each.window), ...[each.items, each.unknown, each.groups, each.asked, each.labelled].map(number), each.new_classes.join(", "), each.accuracy === null ? "–" : percent(each.accuracy), each.held]))
      : h("p", { class: "soft" }, "None yet."),
    h("h2", {}, "Known classes"),
    table(["class", "since window", "labels", "accuracy on items held back"],
      Object.entries(classes).map(([name, each]) => [name, each.since ? String(each.since) : "the beginning", number(each.labels), accuracy(each)])));
}
