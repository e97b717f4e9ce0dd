// One item: what it is, why it is called what it is called, and what it is like.

import { get } from "./api.js";
import { $, ago, h, nameField, percent } from "./dom.js";
import { Strip, spark } from "./items.js";
import { chip } from "./selection.js";

export function closeItem() {
  if ($("dialog").open) $("dialog").close();
}

export async function openItem(app, row) {
  const dialog = $("dialog"), { model } = app;
  let item;
  try { item = await get(`/api/items/${row}`); } catch (error) { return; }
  const kind = model.kind(row);
  app.itemGive = (target) => { app.label([row], target); dialog.close(); return true; };
  dialog.onclose = () => { app.itemGive = null; };
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  dialog.replaceChildren(h("div", { class: "item" },
    h("figure", {}, picture(model, row, item), h("figcaption", {}, h("bdi", {}, item.name))),
    h("div", { class: "facts" },
      h("button", { type: "button", class: "close icon", "aria-label": "Close", onclick: () => dialog.close() }, "×"),
      h("h2", { style: { "--kind": `var(${kind.colour})` }, class: "kind" }, h("span", { class: "shape", "aria-hidden": "true" }, kind.shape), h("bdi", {}, kind.name)),
      h("p", {}, why(model, row, item)),
      item.truth ? h("p", { class: "soft" }, "The pool came with the class ", h("strong", {}, item.truth), ".") : null,
      item.cells?.length ? cells(item.cells) : null,
      item.labels.length ? h("ul", { class: "labels" }, item.labels.map((label) => h("li", {}, h("strong", {}, label.by), `: ${label.target.replace(/^class /, "")}, ${ago(label.at)}`))) : null,
      h("div", { class: "targets" }, model.classesNow.slice(0, 9).map((each, i) => chip(each, i, () => app.give(each.id)))),
      h("div", { class: "row" }, nameField("Name this item", (name) => app.give(`class ${name}`), { placeholder: "class or new name" }),
        h("button", { type: "button", class: "quiet", onclick: () => app.give("unknown") }, "Unknown"),
        h("button", { type: "button", class: "quiet", onclick: () => app.give("ignore") }, "Not of interest")),
      item.neighbours.length ? h("h3", {}, "Nearest items of known classes") : null,
      item.neighbours.length ? neighbours(app, item.neighbours) : null)));
  if (!dialog.open) dialog.showModal();
}

function neighbours(app, rows) {
  const strip = new Strip(app.model, (row) => openItem(app, row));
  strip.show(rows);
  [...strip.element.children].forEach((place, i) => place.append(h("span", { class: "soft caption" }, app.model.kind(rows[i]).name)));
  return strip.element;
}

function picture(model, row, item) {
  if (model.project.kind === "images") return h("img", { src: model.picture(row, "large"), alt: item.name, class: model.project.is_crisp ? "crisp" : "" });
  if (item.values) return spark(item.values);
  return h("blockquote", {}, item.text ?? item.name);
}

function cells(pairs) {
  return h("table", { class: "cells" }, h("tbody", {}, pairs.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))));
}

function why(model, row, item) {
  if (item.learnt) return "A person named it, and the model learnt from it.";
  const rate = model.rate ?? model.project.operating_point;
  const strange = `${percent(item.p_known)} of known items are at least as strange as this one`;
  const near = `Were it of a known class, the model would say ${item.nearest}`;
  if (item.p_known <= rate * (1 + 1e-6)) return `The model calls it unknown: only ${strange}, and up to ${percent(rate)} count as unknown. ${near}.`;
  return `The model calls it ${item.nearest} (${percent(item.nearest_confidence)} sure, were it known): ${strange}, more than the ${percent(rate)} that would count as unknown.`;
}
