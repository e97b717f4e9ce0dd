// The answer: the audit in one sentence, the operating point, groups, classes.

import { h, nameField, number, percent, plural } from "./dom.js";
import { Strip } from "./items.js";

const SHOWN = 12; // items of each card
const REST = 400; // milliseconds after which the slider has come to rest

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
  // Cards far from sight get no pictures.
  const near = new IntersectionObserver((entries) => { for (const { target, isIntersecting } of entries) target.come(isIntersecting); }, { rootMargin: "300px" });
  return { element, draw, close: () => { near.disconnect(); slider.close(); } };

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

  // A card is kept while its kind is there, so that a slider moves quickly and a field in use keeps
  // its cursor; only its items and what it counts change.
  function cards(place, kinds, make, none) {
    const before = new Map([...place.children].map((card) => [card.dataset.key, card]));
    const others = kinds.map((kind) => kind.name).join();
    const wanted = kinds.map((kind) => {
      const key = kind.type === "group" ? [kind.id, kind.leaf, kind.certainty, others].join("|") : kind.id;
      let card = before.get(key);
      if (!card) { card = make(kind); near.observe(card); }
      card.dataset.key = key;
      card.show(kind);
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

function card(app, kind, note, footer) {
  const count = h("span", { class: "soft" }), strip = new Strip(app.model, (row) => app.open(row));
  let rows = [], isNear = false;
  const element = h("article", { class: kind.type === "new" ? "card new" : "card", "aria-label": kind.name },
    h("header", {},
      h("a", { class: "kind", href: `#kind/${encodeURIComponent(kind.id)}`, style: { "--kind": `var(${kind.colour})` } },
        h("span", { class: "shape", "aria-hidden": "true" }, kind.shape), h("bdi", {}, kind.name)), count),
    strip.element, footer);
  element.show = (now) => {
    const words = note(now);
    count.textContent = plural(now.rows.length, "item") + (words ? `, ${words}` : "");
    rows = now.rows.subarray(0, SHOWN);
    if (isNear) strip.show(rows);
  };
  element.come = (is) => { isNear = is; if (is) strip.show(rows); };
  return element;
}

// What a kind is now: a card may be older.
const rowsNow = (app, kind) => app.model.find(kind.id)?.rows ?? [];
const openNow = (app, kind) => rowsNow(app, kind).filter((row) => !app.model.isLabelled(row) && !app.model.columns.learnt[row]);

function groupCard(app, kind) {
  const { model } = app;
  const profile = model.project.profiles.find((each) => each.group === kind.group);
  const typical = profile?.typical?.length ? profile.typical.slice(0, 5).join(", ") : profile ? `nearest to ${profile.nearest}` : "";
  const many = model.structure.n_groups > 1 && !kind.scattered;
  const words = kind.scattered ? "alone, or in groups that are too small" : `one class of its own: ${percent(kind.certainty)} sure`;
  return card(app, kind, () => words,
    h("footer", {},
      nameField(`Name all of ${kind.name}`, (name) => app.label(rowsNow(app, kind), `class ${name}`)),
      h("span", { class: "soft" }, typical),
      h("span", { class: "grow" }),
      many ? mergeField(app, kind) : null,
      kind.scattered ? null : h("button", { type: "button", class: "quiet", onclick: () => app.act("split", { target: String(kind.leaf) }) }, "Split"),
      h("button", { type: "button", class: "quiet", onclick: () => app.label(rowsNow(app, kind), "ignore") }, "Not of interest")));
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
  const confirm = h("button", { type: "button", onclick: () => app.label(openNow(app, kind), kind.id) });
  const done = h("span", { class: "soft" });
  const note = (now) => (now.nLabelled ? `${number(now.nLabelled)} by people` : now.type === "new" ? "new" : "");
  const element = card(app, kind, note, h("footer", {}, confirm, done)), { show } = element;
  element.show = (now) => {
    show(now);
    const n = now.rows.length - now.nLabelled;
    confirm.hidden = n === 0;
    confirm.textContent = `Confirm all ${number(n)}`;
    done.textContent = n ? "" : now.rows.length ? "All confirmed" : "No item is given this class";
  };
  return element;
}

// A slider over the share of known items that may be called unknown. Everything follows it at once.
function operatingPoint(app) {
  const { model } = app, { points, nothing_unknown: nothing, operating_point: decided } = model.project;
  if (nothing || !points.rates.length) return { element: h("p", { class: "soft" }, "Nothing is called unknown at any operating point."), draw() {}, close() {} };
  const input = h("input", { type: "range", min: "0", max: String(points.rates.length - 1), step: "1", id: "rate", "aria-describedby": "rate-words" });
  const words = h("p", { class: "soft", id: "rate-words" });
  let resting = null;
  const placeOf = (rate) => { let i = 0; while (i + 1 < points.rates.length && points.rates[i + 1] <= rate * (1 + 1e-9)) i++; return i; };
  input.addEventListener("input", () => {
    model.slide(points.rates[Number(input.value)]);
    app.refresh();
  });
  // Keys move it step by step: where it comes to rest is one act.
  input.addEventListener("change", () => { clearTimeout(resting); resting = setTimeout(decide, REST); });
  const decide = async () => {
    const rate = model.preview;
    resting = null;
    if (rate === null) return;
    await app.act("decide", { target: String(rate) });
    if (model.preview === rate) model.slide(null); // it may have moved on
    app.refresh();
  };
  return {
    close() { if (resting !== null) { clearTimeout(resting); decide(); } },
    element: h("div", { class: "rate" }, h("label", { for: "rate" }, "Operating point"), input, words),
    draw() {
      const rate = model.rate ?? decided;
      if (document.activeElement !== input || model.preview === null) input.value = String(placeOf(rate));
      const at = model.pointAt(rate);
      input.setAttribute("aria-valuetext", `${percent(rate)} of known items may be called unknown`);
      words.replaceChildren("Up to ", h("strong", {}, percent(rate)), " of the known items may be called unknown: the model calls ",
        h("strong", {}, number(at.unknown)), " items unknown, about ", h("strong", {}, number(Math.round(at.alarms))),
        " of them false alarms, and finds about ", h("strong", {}, percent(at.found)), " of what is new.");
    },
  };
}
