// What can be done with the items that are selected.

import { $, h, nameField, plural } from "./dom.js";

export function drawBar(app) {
  const { model } = app, bar = $("bar"), n = model.selected.size;
  bar.hidden = n === 0;
  document.body.classList.toggle("selecting", n > 0);
  if (!n) { bar.replaceChildren(); return; }
  if (!bar.firstChild) bar.append(h("strong", { class: "how-many" }), h("div", { class: "targets" }), field(app), others(app));
  bar.querySelector(".how-many").textContent = `${plural(n, "item")} selected`;
  const targets = bar.querySelector(".targets"), kinds = model.classesNow.slice(0, 9);
  const key = kinds.map((kind) => kind.id).join("|");
  if (targets.dataset.key !== key) {
    targets.dataset.key = key;
    targets.replaceChildren(...kinds.map((kind, i) => chip(kind, i, () => app.give(kind.id))));
  }
}

export function chip(kind, i, run) {
  return h("button", { type: "button", class: "chip", style: { "--kind": `var(${kind.colour})` }, onclick: run },
    h("kbd", {}, String(i + 1)), h("bdi", {}, kind.name));
}

const rows = (app) => [...app.model.selected];

function field(app) {
  return nameField("Name the selected items", (name) => app.label(rows(app), `class ${name}`), { placeholder: "class or new name" });
}

function others(app) {
  const groups = h("select", { "aria-label": "Move to a group", onchange: (event) => {
    if (event.target.value) app.label(rows(app), event.target.value);
    event.target.value = "";
  }, onfocus: () => groups.replaceChildren(h("option", { value: "" }, "To a group …"),
    ...app.model.kinds.filter((kind) => kind.type === "group" && !kind.scattered).map((kind) => h("option", { value: `leaf ${kind.leaf}` }, kind.name)),
    h("option", { value: "unknown" }, "unknown, as the model groups it")) },
  h("option", { value: "" }, "To a group …"));
  return h("div", { class: "others" }, groups,
    h("button", { type: "button", onclick: () => app.label(rows(app), "ignore") }, "Not of interest"),
    h("button", { type: "button", onclick: () => app.label(rows(app), "none") }, "Take labels away"),
    h("button", { type: "button", class: "quiet", onclick: () => { app.model.selected.clear(); app.model.changed(); } }, "Clear"));
}
