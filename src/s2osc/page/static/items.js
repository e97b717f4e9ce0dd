// What items look like in a few words or numbers, and a few of them in a row.

import { Refused, get, pictures } from "./api.js";
import { h } from "./dom.js";

const SECOND = 1000;
const SPARK = { width: 120, height: 60 };

// Things about items that are fetched as they come in sight: many in one request, each kept.
class Supply {
  constructor(fetchMany, { atOnce, most }) {
    this.fetchMany = fetchMany; // (rows, found), which calls found(row, thing) as they come
    this.atOnce = atOnce;
    this.most = most;
    this.things = new Map();
    this.wanted = new Map(); // row: what is done when it is here
    this.busy = false;
  }

  get(row) { return this.things.get(row); }

  // Calls ``show`` with the thing of a row, at once where it is here.
  ask(row, show) {
    if (this.things.has(row)) { show(this.things.get(row)); return; }
    this.wanted.set(row, [...(this.wanted.get(row) ?? []), show]);
    if (this.busy) return;
    this.busy = true;
    setTimeout(() => this.#fetch()); // with all others that this turn asks for
  }

  // Whoever asked with ``show`` does not need it any more.
  forget(row, show) {
    const others = (this.wanted.get(row) ?? []).filter((each) => each !== show);
    if (others.length) this.wanted.set(row, others);
    else this.wanted.delete(row);
  }

  async #fetch() {
    const asked = [...this.wanted.keys()].slice(0, this.atOnce);
    let pause = 0;
    try {
      if (asked.length) await this.fetchMany(asked, (row, thing) => this.#keep(row, thing));
      for (const row of asked) this.wanted.delete(row);
    } catch (error) {
      if (error instanceof Refused) for (const row of asked) this.wanted.delete(row);
      pause = SECOND;
    }
    this.busy = this.wanted.size > 0;
    if (this.busy) setTimeout(() => this.#fetch(), pause);
  }

  #keep(row, thing) {
    this.things.set(row, thing);
    if (this.things.size > this.most) {
      const [oldest, value] = this.things.entries().next().value;
      this.things.delete(oldest);
      this.discard?.(value);
    }
    for (const show of this.wanted.get(row) ?? []) show(thing);
    this.wanted.delete(row);
  }
}

// The words or numbers of items.
export const makeBriefs = () => new Supply(async (rows, found) => {
  for (const brief of await get(`/api/items?rows=${rows.join(",")}`)) found(brief.row, brief);
}, { atOnce: 300, most: 50_000 });

// Small pictures, as addresses that the browser has in its memory; "" where there is none.
export function makePictures(pool) {
  const supply = new Supply((rows, found) => pictures(`/pictures/${pool}?rows=${rows.join(",")}`,
    (row, picture) => found(row, picture.size ? URL.createObjectURL(picture) : "")), { atOnce: 60, most: 5_000 });
  supply.discard = (address) => URL.revokeObjectURL(address);
  return supply;
}

// A brief as what a tile shows.
export const content = (brief) => (brief.values ? spark(brief.values) : brief.text ?? brief.name);

// A vector as bars above and below its middle.
export function spark(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${SPARK.width} ${SPARK.height}`);
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const step = SPARK.width / values.length, middle = SPARK.height / 2;
  path.setAttribute("d", values.map((value, i) => `M${(i * step).toFixed(1)} ${middle}v${(-value * middle).toFixed(1)}h${(step * 0.8).toFixed(1)}V${middle}z`).join(""));
  svg.append(path);
  return svg;
}

// A few items in a row, as the opening of a gallery. Shown other items, it changes those that differ.
export class Strip {
  constructor(model, open) {
    this.model = model;
    this.open = open;
    this.isImages = model.project.kind === "images";
    this.supply = this.isImages ? model.pictures : model.briefs;
    this.element = h("ul", { class: "strip" });
    this.rows = [];
  }

  show(rows) {
    const places = this.element.children;
    while (places.length > rows.length) places[places.length - 1].remove();
    for (let i = 0; i < rows.length; i++) {
      if (rows[i] === this.rows[i]) continue;
      if (i === places.length) this.element.append(this.#place());
      this.#fill(places[i].firstChild, rows[i]);
    }
    this.rows = [...rows];
  }

  #place() {
    const inner = this.isImages
      ? h("img", { alt: "", class: this.model.project.is_crisp ? "crisp" : "", draggable: "false" })
      : h("span", { class: "text" });
    return h("li", {}, h("button", { type: "button", class: this.isImages ? "mini" : "mini words",
      onclick: (event) => this.open(Number(event.currentTarget.dataset.row)) }, inner));
  }

  #fill(button, row) {
    if (button.show) this.supply.forget(Number(button.dataset.row), button.show);
    button.dataset.row = row;
    button.setAttribute("aria-label", `Open item ${row}`);
    if (this.isImages) {
      button.firstChild.removeAttribute("src"); // never the picture of another item
      button.show = (address) => { button.firstChild.src = address; };
    } else {
      button.firstChild.textContent = "…";
      button.show = (brief) => {
        button.firstChild.replaceChildren(content(brief));
        button.setAttribute("aria-label", `Open ${brief.text ?? brief.name}`);
      };
    }
    this.supply.ask(row, button.show);
  }
}
