// Out of the page: files for other programs.

import { get, send } from "./api.js";
import { h, toast } from "./dom.js";

export function exportView(app) {
  const list = h("div", { class: "cards" }), words = h("p", { class: "sentence", role: "status" });
  const element = h("div", { class: "wrap" }, h("h2", {}, "Export"),
    h("p", { class: "soft" }, "The answers of the model, with the labels of people in their place. Written beside the results, on this machine."), words, list);
  get("/api/exports").then((forms) => list.replaceChildren(...forms.map((form) => h("article", { class: "card" }, h("h3", {}, form.name), h("p", { class: "soft" }, form.words),
    h("footer", {}, h("button", { type: "button", onclick: (event) => run(form, event.target) }, "Write")))))).catch((error) => { words.textContent = error.message; });
  return { element, draw() {} };

  async function run(form, button) {
    button.disabled = true;
    words.textContent = `Writing ${form.name} …`;
    try {
      const { place } = await send("POST", "/api/exports", { form: form.id, by: app.by });
      words.replaceChildren(`${form.name}: `, h("code", {}, place));
      toast("Written.");
    } catch (error) { words.textContent = error.message; } finally { button.disabled = false; }
  }
}
