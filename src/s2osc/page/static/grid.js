// A gallery of any number of items: only the tiles in sight exist.

import { h } from "./dom.js";
import { content } from "./items.js";

const AHEAD = 2; // rows of tiles above and below what is seen

export class Grid {
  constructor(model, { label, open, tileSize = null }) {
    this.model = model;
    this.open = open;
    this.rows = [];
    this.active = 0;
    this.anchor = null;
    this.tiles = new Map();
    this.isText = model.project.kind !== "images";
    this.supply = this.isText ? model.briefs : model.pictures;
    this.size = tileSize ?? (this.isText ? { width: 220, height: 120 } : { width: 112, height: 112 });
    this.inner = h("div", { class: "grid-inner" });
    this.element = h("div", {
      class: "grid", tabindex: "0", role: "listbox", "aria-multiselectable": "true", "aria-label": label,
      onkeydown: (event) => this.#key(event), onclick: (event) => this.#click(event),
      ondblclick: (event) => { const tile = event.target.closest(".tile"); if (tile) this.open(Number(tile.dataset.row)); },
      onfocus: () => this.draw(),
    }, this.inner);
    this.onScroll = () => this.#later();
    addEventListener("scroll", this.onScroll, { passive: true });
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.element);
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    this.resize.disconnect();
  }

  show(rows) {
    this.rows = rows;
    this.active = Math.min(this.active, Math.max(0, rows.length - 1));
    this.draw();
  }

  #later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.draw(); });
  }

  get perRow() { return Math.max(1, Math.floor((this.element.clientWidth + 8) / (this.size.width + 8))); }

  draw() {
    const perRow = this.perRow, height = this.size.height + 8;
    const width = (this.element.clientWidth + 8) / perRow;
    const nRows = Math.ceil(this.rows.length / perRow);
    this.inner.style.height = `${Math.max(0, nRows * height - 8)}px`;
    if (!this.element.clientWidth) return;
    const top = this.inner.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - AHEAD);
    const last = Math.min(nRows, Math.ceil((innerHeight - top) / height) + AHEAD);
    const wanted = new Set();
    for (let place = first * perRow; place < Math.min(this.rows.length, last * perRow); place++) {
      const row = this.rows[place];
      wanted.add(row);
      const tile = this.tiles.get(row) ?? this.#make(row);
      tile.style.transform = `translate(${Math.round((place % perRow) * width)}px, ${Math.floor(place / perRow) * height}px)`;
      tile.dataset.place = place;
      this.#mark(tile, row, place);
    }
    for (const [row, tile] of this.tiles) if (!wanted.has(row)) this.#remove(row, tile);
    const active = this.rows[this.active];
    if (wanted.has(active)) this.element.setAttribute("aria-activedescendant", `tile-${active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #mark(tile, row, place) {
    const { model } = this, kind = model.kind(row), selected = model.selected.has(row), text = model.briefs.get(row)?.text;
    const isActive = place === this.active && document.activeElement === this.element, isPending = model.pending.has(row);
    // Nothing is written that stands there already: most tiles only move while a person scrolls.
    const now = [place, this.rows.length, kind.id, kind.colour, model.target[row], model.disputed[row], selected, isActive, isPending, text].join();
    if (tile.now === now) return;
    tile.now = now;
    tile.setAttribute("aria-selected", selected);
    tile.setAttribute("aria-setsize", this.rows.length);
    tile.setAttribute("aria-posinset", place + 1);
    tile.setAttribute("aria-label", `${text ?? `item ${row}`}, ${kind.name}${model.isLabelled(row) ? ", labelled by a person" : ""}`);
    tile.classList.toggle("active", isActive);
    tile.classList.toggle("labelled", model.isLabelled(row));
    tile.classList.toggle("disputed", Boolean(model.disputed[row]));
    tile.classList.toggle("pending", isPending);
    tile.style.setProperty("--kind", `var(${kind.colour})`);
  }

  #make(row) {
    const inner = this.isText
      ? h("span", { class: "text" }, "…")
      : h("img", { alt: "", draggable: "false", class: this.model.project.is_crisp ? "crisp" : "" });
    const tile = h("div", { class: this.isText ? "tile words" : "tile", role: "option", id: `tile-${row}` },
      inner, h("span", { class: "tick", "aria-hidden": "true" }), h("span", { class: "dot", "aria-hidden": "true" }));
    tile.dataset.row = row;
    tile.style.width = `${this.size.width}px`;
    tile.style.height = `${this.size.height}px`;
    this.tiles.set(row, tile);
    this.inner.append(tile);
    tile.show = this.isText ? (brief) => this.#write(tile, brief) : (address) => { inner.src = address; };
    this.supply.ask(row, tile.show);
    return tile;
  }

  #remove(row, tile) {
    tile.remove();
    this.tiles.delete(row);
    this.supply.forget(row, tile.show);
  }

  #write(tile, brief) {
    tile.querySelector(".text").replaceChildren(content(brief));
    tile.title = brief.name;
    this.#later();
  }

  #click(event) {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    const place = Number(tile.dataset.place), row = Number(tile.dataset.row);
    const ticked = event.target.closest(".tick") || event.ctrlKey || event.metaKey;
    this.active = place;
    if (event.shiftKey && this.anchor !== null) this.#range(this.anchor, place);
    else if (ticked || this.model.selected.size) { this.#toggle(row); this.anchor = place; }
    else { this.anchor = place; this.open(row); return; }
    this.element.focus({ preventScroll: true });
    this.model.changed();
  }

  #toggle(row) {
    if (!this.model.selected.delete(row)) this.model.selected.add(row);
  }

  #range(from, to) {
    for (let place = Math.min(from, to); place <= Math.max(from, to); place++) this.model.selected.add(this.rows[place]);
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.perRow, ArrowDown: this.perRow, Home: -Infinity, End: Infinity,
      PageUp: -4 * this.perRow, PageDown: 4 * this.perRow };
    if (event.key in steps && !event.altKey) {
      const next = Math.max(0, Math.min(this.rows.length - 1, this.active + steps[event.key]));
      if (event.shiftKey) { this.anchor ??= this.active; this.#range(this.active, next); this.model.changed(); }
      this.active = next;
      this.#reveal();
      this.draw();
    } else if (event.key === " " || event.key === "x") {
      this.#toggle(this.rows[this.active]);
      this.anchor = this.active;
      this.model.changed();
    } else if (event.key === "a" || (event.key === "A" && event.shiftKey)) {
      for (const row of this.rows) this.model.selected.add(row);
      this.model.changed();
    } else if (event.key === "Enter") {
      this.open(this.rows[this.active]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #reveal() {
    const height = this.size.height + 8, top = this.inner.getBoundingClientRect().top + Math.floor(this.active / this.perRow) * height;
    const head = document.querySelector(".top").offsetHeight + 8, foot = innerHeight - 90;
    if (top < head) scrollBy(0, top - head);
    else if (top + height > foot) scrollBy(0, top + height - foot);
  }
}
