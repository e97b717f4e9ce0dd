// One item after another: those the model is least sure of, and the random check.

import { get } from "./api.js";
import { h, nameField, number, percent, plural } from "./dom.js";
import { spark } from "./items.js";
import { chip } from "./selection.js";

export function queueView(app) {
  const { model } = app;
  let rows = model.unsureRows();
  return oneByOne(app, {
    kind: "label",
    heading: "Where the model is least sure",
    rows: () => rows,
    isDone: (row) => model.isLabelled(row),
    note: (row) => { const kind = model.kind(row); return `The model says ${kind.name}, ${percent(model.columns.confidence[row])} sure. Enter agrees.`; },
    agree: (row) => { const kind = model.kind(row); return kind.type === "known" || kind.type === "new" ? kind.id : kind.type === "group" ? "unknown" : null; },
    more: () => { rows = model.unsureRows(); },
  });
}

export function checkView(app) {
  const { model } = app;
  let n = 30, check = { rows: [], labels: {}, figures: [] }, asked = -1;
  const bar = h("progress", { max: "30", value: "0", "aria-label": "Items checked" }), figures = h("div", { class: "figures" });
  const load = async () => { try { check = await get(`/api/check?n=${n}`); app.refresh(); } catch { /* asked for again with the next act */ } };
  const view = oneByOne(app, {
    kind: "check",
    heading: "Label items drawn at random",
    rows: () => check.rows,
    isDone: (row) => row in check.labels,
    note: () => "What the model says is hidden, so that your labels measure it fairly. Skip what you cannot tell.",
    agree: () => null,
    above: h("div", { class: "check-head" }, h("div", { class: "row" }, bar, h("span", { class: "soft", id: "check-count" }),
      h("span", { class: "soft" }, "How many:"), [30, 100, 300].map((each) => h("button", { type: "button", class: "quiet", onclick: () => { n = each; load(); } }, `${each}`))), figures),
  });
  const draw = view.draw;
  view.draw = () => {
    if (model.act !== asked) { asked = model.act; load(); }
    const done = Object.keys(check.labels).length;
    bar.max = Math.max(1, check.rows.length);
    bar.value = done;
    view.element.querySelector("#check-count").textContent = `${number(done)} of ${plural(check.rows.length, "item")}`;
    figures.replaceChildren(...check.figures.map(interval));
    draw();
  };
  return view;
}

// A share with its interval, which shrinks as labels come.
function interval({ name, estimate, low, high }) {
  const track = h("span", { class: "track", role: "img", "aria-label": `${percent(low)} to ${percent(high)}` },
    h("span", { class: "range", style: { left: `${low * 100}%`, width: `${Math.max(0.5, (high - low) * 100)}%` } }),
    h("span", { class: "mark", style: { left: `${estimate * 100}%` } }));
  return h("div", { class: "figure" }, h("span", {}, name), track, h("strong", {}, percent(estimate)), h("span", { class: "soft" }, `${percent(low)} to ${percent(high)}`));
}

function oneByOne(app, task) {
  const { model } = app;
  let place = 0, shown = -1;
  const stage = h("div", { class: "stage" }), note = h("p", { class: "soft" }), targets = h("div", { class: "targets tall" });
  const heading = h("h2", {}, task.heading);
  const field = nameField("Name this item", (name) => give(`class ${name}`), { placeholder: "class or new name" });
  const element = h("div", { class: "wrap one" }, heading, task.above ?? null,
    h("div", { class: "one-frame" }, stage, h("div", { class: "one-side" }, note, targets, field,
      h("div", { class: "row" },
        h("button", { type: "button", onclick: () => give("unknown") }, h("kbd", {}, "u"), " Unknown"),
        h("button", { type: "button", onclick: () => give("ignore") }, h("kbd", {}, "i"), " Not of interest"),
        h("button", { type: "button", class: "quiet", onclick: () => step(1) }, h("kbd", {}, "→"), " Skip"),
        h("button", { type: "button", class: "quiet", onclick: () => step(-1) }, h("kbd", {}, "←"), " Back")))));
  return { element, draw, give, key };

  function row() { return task.rows()[place]; }

  function step(by) {
    const rows = task.rows();
    place = Math.max(0, Math.min(rows.length, place + by));
    app.refresh();
  }

  function give(target) {
    const current = row();
    if (current === undefined || !target) return false;
    app.act(task.kind, { target, rows: [current] });
    step(1);
    return true;
  }

  function key(event) {
    if (event.key === "Enter" && event.target.closest?.("button")) return false;
    if (event.key === "Enter") return row() === undefined ? false : give(task.agree(row())) || (step(1), true);
    const run = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), u: () => give("unknown"), i: () => give("ignore") }[event.key];
    run?.();
    return Boolean(run);
  }

  async function draw() {
    const rows = task.rows();
    if (shown < 0) while (place < rows.length && task.isDone(rows[place])) place++;
    const current = row();
    const kinds = model.classesNow;
    const names = kinds.map((kind) => kind.id).join("|");
    if (targets.dataset.key !== names) {
      targets.dataset.key = names;
      targets.replaceChildren(...kinds.slice(0, 30).map((kind, i) => chip(kind, i, () => give(kind.id))));
    }
    if (current === undefined) {
      shown = -1;
      stage.replaceChildren(h("p", { class: "empty" }, rows.length ? "That was the last one." : "Nothing is open here."));
      note.textContent = "";
      if (rows.length && task.more) { task.more(); place = 0; if (task.rows().length) app.refresh(); }
      return;
    }
    note.textContent = task.note(current);
    if (current === shown) return;
    shown = current;
    if (model.project.kind === "images") stage.replaceChildren(h("img", { src: model.picture(current, "large"), alt: `item ${current}`, class: model.project.is_crisp ? "crisp" : "" }));
    else {
      try {
        const item = await get(`/api/items/${current}`);
        if (shown === current) stage.replaceChildren(item.values ? spark(item.values) : h("blockquote", {}, item.text ?? item.name));
      } catch { shown = -1; }
    }
    const next = rows[place + 1];
    if (next !== undefined && model.project.kind === "images") new Image().src = model.picture(next, "large");
  }
}
