// The answer: the audit in one sentence, the operating point, groups, classes.

import { h, nameField, number, percent, plural } from "./dom.js";
import { strip } from "./grid.js";

export function overview(app) {
  const { model } = app, { project } = model;
  const [count, words] = project.headline;
  const groups = h("div", { class: "cards" }), classes = h("div", { class: "cards" });
  const headline = h("p", { class: "headline" });
  const slider = operatingPoint(app);
  const element = h("div", { class: "wrap" },
    h("section", { class: "lead" }, headline, h("p", { class: "sentence" }, project.sentence),
      project.warnings.length ? h("details", {}, h("summary", {}, plural(project.warnings.length, "thing"), " to be careful about"), h("ul", {}, project.warnings.map((text) => h("li", {}, text)))) : null,
      project.missing ? h("p", { class: "note" }, project.missing) : null,
      slider.element),
    h("h2", {}, "New groups, the surest first"), groups,
    h("h2", {}, "Known classes"), classes);
  return { element, draw };

  function draw() {
    const nUnknown = model.groups.reduce((sum, kind) => sum + kind.rows.length, 0);
    const moved = model.rate !== null || model.act > 0;
    headline.replaceChildren(...(moved
      ? [h("strong", {}, number(nUnknown)), ` of ${number(model.n)} items are unknown and have no name yet, in ${plural(model.groups.length, "group")}`]
      : [h("strong", {}, count), words]));
    slider.draw();
    cards(groups, model.groups, (kind) => groupCard(app, kind), "Nothing without a name is left here.");
    cards(classes, [...model.classesNow].sort((a, b) => (b.type === "new") - (a.type === "new")), (kind) => classCard(app, kind), "No item has a class.");
  }

  // Cards are kept while their items are the same, so that a field in use keeps its cursor.
  function cards(place, kinds, make, none) {
    const before = new Map([...place.children].map((card) => [card.dataset.key, card]));
    const wanted = kinds.map((kind) => {
      const rows = model.rowsOf(kind);
      const labelled = rows.reduce((sum, row) => sum + model.isLabelled(row), 0);
      const key = `${kind.id}|${rows.length}|${labelled}|${rows.slice(0, 12).join()}|${model.structure.n_groups}`;
      const card = before.get(key) ?? make(kind);
      card.dataset.key = key;
      return card;
    });
    if (!wanted.length) place.replaceChildren(h("p", { class: "empty" }, none));
    else if (wanted.some((card, i) => place.children[i] !== card) || place.children.length !== wanted.length) {
      const focused = document.activeElement;
      place.replaceChildren(...wanted);
      if (focused && place.contains(focused)) focused.focus({ preventScroll: true });
    }
  }
}

function head(app, kind, note) {
  return h("header", {},
    h("a", { class: "kind", href: `#kind/${encodeURIComponent(kind.id)}`, style: { "--kind": `var(${kind.colour})` } },
      h("span", { class: "shape", "aria-hidden": "true" }, kind.shape), h("bdi", {}, kind.name)),
    h("span", { class: "soft" }, plural(kind.rows.length, "item"), note ? `, ${note}` : ""));
}

function groupCard(app, kind) {
  const { model } = app, rows = model.rowsOf(kind);
  const profile = model.project.profiles.find((each) => each.group === kind.group);
  const typical = profile?.typical?.length ? profile.typical.slice(0, 5).join(", ") : profile ? `nearest to ${profile.nearest}` : "";
  const many = model.structure.n_groups > 1 && !kind.scattered;
  return h("article", { class: "card", "aria-label": kind.name },
    head(app, kind, kind.scattered ? "alone or in too small a company" : `one class of its own with ${percent(kind.certainty)}`),
    strip(model, rows, (row) => app.open(row)),
    h("footer", {},
      nameField(`Name all of ${kind.name}`, (name) => app.label(rows, `class ${name}`)),
      h("span", { class: "soft" }, typical),
      h("span", { class: "grow" }),
      many ? mergeField(app, kind) : null,
      kind.scattered ? null : h("button", { type: "button", class: "quiet", onclick: () => app.act("split", { target: String(kind.leaf) }) }, "Split"),
      h("button", { type: "button", class: "quiet", onclick: () => app.label(rows, "ignore") }, "Not of interest")));
}

function mergeField(app, kind) {
  const others = app.model.groups.filter((other) => other !== kind && !other.scattered);
  if (!others.length) return null;
  return h("select", { "aria-label": `Merge ${kind.name} with`, class: "quiet", onchange: (event) => {
    const other = app.model.find(event.target.value);
    if (other) app.act("merge", { target: `${kind.leaf},${other.leaf}` });
  } }, h("option", { value: "" }, "Merge with …"), others.map((other) => h("option", { value: other.id }, other.name)));
}

function classCard(app, kind) {
  const { model } = app, rows = model.rowsOf(kind);
  const open = rows.filter((row) => !model.isLabelled(row) && !model.columns.learnt[row]);
  const done = rows.length - open.length;
  return h("article", { class: kind.type === "new" ? "card new" : "card", "aria-label": kind.name },
    head(app, kind, done ? `${number(done)} by people` : kind.type === "new" ? "new" : ""),
    rows.length ? strip(model, rows, (row) => app.open(row)) : null,
    h("footer", {},
      open.length ? h("button", { type: "button", onclick: () => app.label(open, kind.id) }, `Confirm all ${number(open.length)}`) : h("span", { class: "soft" }, rows.length ? "All confirmed" : "No item is given this class")));
}

// A slider over the share of known items that may be called unknown. Everything follows it at once.
function operatingPoint(app) {
  const { model } = app, { points, nothing_unknown: nothing, operating_point: decided } = model.project;
  if (nothing || !points.rates.length) return { element: h("p", { class: "soft" }, "Nothing is called unknown at any operating point."), draw() {} };
  const input = h("input", { type: "range", min: "0", max: String(points.rates.length - 1), step: "1", id: "rate", "aria-describedby": "rate-words" });
  const words = h("p", { class: "soft", id: "rate-words" });
  const place = (rate) => { let i = 0; while (i + 1 < points.rates.length && points.rates[i + 1] <= rate * (1 + 1e-9)) i++; return i; };
  input.addEventListener("input", () => {
    model.preview = points.rates[Number(input.value)];
    model.sort();
    app.refresh();
  });
  input.addEventListener("change", async () => {
    const rate = points.rates[Number(input.value)];
    await app.act("decide", { target: String(rate) });
    model.preview = null;
    model.sort();
    app.refresh();
  });
  return {
    element: h("div", { class: "rate" }, h("label", { for: "rate" }, "Operating point"), input, words),
    draw() {
      const rate = model.rate ?? decided;
      if (document.activeElement !== input || model.preview === null) input.value = String(place(rate));
      const at = model.pointAt(rate);
      input.setAttribute("aria-valuetext", `${percent(rate)} of known items may be called unknown`);
      words.replaceChildren("Up to ", h("strong", {}, percent(rate)), " of the known items may be called unknown: the model calls ",
        h("strong", {}, number(at.unknown)), " items unknown, about ", h("strong", {}, number(Math.round(at.alarms))),
        " of them false alarms, and finds about ", h("strong", {}, percent(at.found)), " of what is new.");
    },
  };
}
