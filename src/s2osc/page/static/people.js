// Where people disagree, and how well they agree.

import { get } from "./api.js";
import { h, number, plural } from "./dom.js";
import { Grid } from "./grid.js";

export function peopleView(app) {
  const { model } = app;
  const grid = new Grid(model, { label: "Items on which people disagree", open: (row) => app.open(row) });
  const words = h("p", { class: "sentence" }), table = h("div", {}), who = h("p", { class: "soft" });
  let asked = -1;
  return {
    element: h("div", { class: "wrap" }, h("h2", {}, "People"), who, words, table, h("h2", {}, "Disagreements"), grid.element),
    close: () => grid.close(),
    async draw() {
      grid.show(model.disputedRows);
      who.textContent = model.people.length ? `Labels by ${model.people.join(", ")}.` : "Nobody has labelled anything yet.";
      if (model.act === asked) return;
      asked = model.act;
      try {
        const found = await get("/api/people");
        words.textContent = found.n_items
          ? `${plural(found.n_items, "item")} were labelled by two people or more; they disagree on ${number(found.n_disputed)}.`
          : "No item was labelled by two people yet.";
        table.replaceChildren(...(found.kappa.length ? [kappas(found.kappa)] : []));
      } catch { asked = -1; }
    },
  };
}

function kappas(rows) {
  return h("table", { class: "plain" }, h("caption", {}, "Agreement beyond chance, by class (Cohen's kappa: 1 is always, 0 as by chance)"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "class"), h("th", { scope: "col" }, "kappa"))),
    h("tbody", {}, rows.map(([name, kappa]) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, name)), h("td", {}, kappa.toFixed(2))))));
}
