// Where people disagree, and how well they agree.

import { get } from "./api.js";
import { h, number, plural, table } from "./dom.js";
import { Grid } from "./grid.js";

export function peopleView(app) {
  const { model } = app;
  const grid = new Grid(model, { label: "Items on which people disagree", open: (row) => app.open(row) });
  const words = h("p", { class: "sentence" }), agreement = h("div", {}), who = h("p", { class: "soft" });
  let asked = -1;
  return {
    element: h("div", { class: "wrap" }, h("h2", {}, "People"), who, words, agreement, h("h2", {}, "Disagreements"), grid.element),
    close: () => grid.close(),
    async draw() {
      grid.show(model.disputedRows);
      who.textContent = model.people.length ? `Labels by ${model.people.join(", ")}.` : "Nobody has labelled anything yet.";
      if (model.act === asked) return;
      asked = model.act;
      try {
        const found = await get("/api/people");
        words.textContent = found.n_items
          ? `Labelled by two people or more: ${plural(found.n_items, "item")}; they disagree on ${number(found.n_disputed)}.`
          : "No item was labelled by two people yet.";
        agreement.replaceChildren(...(found.kappa.length ? [table(["class", "kappa"], found.kappa.map(([name, kappa]) => [name, kappa.toFixed(2)]),
          "Agreement beyond chance, by class (Cohen's kappa: 1 is always, 0 as by chance)")] : []));
      } catch { asked = -1; }
    },
  };
}
