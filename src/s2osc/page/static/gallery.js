// One class, group or search as a gallery of all its items.

import { get } from "./api.js";
import { h, nameField, number, plural } from "./dom.js";
import { Grid } from "./grid.js";

export function galleryView(app, words, view) {
  const { model } = app;
  const grid = new Grid(model, { label: "Items", open: (row) => app.open(row) });
  const heading = h("h2", {}), note = h("p", { class: "soft" }), actions = h("div", { class: "row" });
  let found = null;
  if (view === "search") {
    get(`/api/search?words=${encodeURIComponent(words)}`).then((rows) => { found = rows; app.refresh(); grid.element.focus({ preventScroll: true }); });
  } else setTimeout(() => grid.element.focus({ preventScroll: true }));
  return {
    element: h("div", { class: "wrap" }, h("p", {}, h("a", { href: "#groups", class: "back" }, "← All")), heading, note, actions, grid.element),
    close: () => grid.close(),
    draw() {
      const kind = view === "kind" ? model.find(words) : null;
      const rows = view === "kind" ? (kind ? kind.rows : []) : found ?? [];
      heading.textContent = kind ? kind.name : view === "search" ? `“${words}”` : words;
      note.textContent = view === "search" && found === null ? "Searching …"
        : `${plural(rows.length, "item")}. Click to open, tick to select, Shift for a range, a for all, 1 to 9 to name.`;
      if (kind && !actions.firstChild) actions.append(...buttons(app, words));
      grid.show(rows);
    },
  };
}

function buttons(app, id) {
  const { model } = app;
  const rows = () => model.find(id)?.rows ?? [];
  if (id.startsWith("group ")) return [nameField("Name all of this group", (name) => app.label(rows(), `class ${name}`))];
  if (!id.startsWith("class ")) return [];
  const open = () => rows().filter((row) => !model.isLabelled(row));
  return [h("button", { type: "button", onclick: () => app.label(open(), id) }, `Confirm all ${number(open().length)}`)];
}
