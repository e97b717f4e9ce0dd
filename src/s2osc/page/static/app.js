// The page: loads the pool, follows what others do, and shows one view at a time.

import { Outbox, Refused, get } from "./api.js";
import { $, h, plural, toast } from "./dom.js";
import { exportView } from "./export.js";
import { galleryView } from "./gallery.js";
import { closeItem, openItem } from "./item.js";
import { learnView } from "./learn.js";
import { mapView } from "./map.js";
import { Model } from "./model.js";
import { checkView, queueView } from "./one.js";
import { overview } from "./overview.js";
import { peopleView } from "./people.js";
import { drawBar } from "./selection.js";

const SECOND = 1000;
const VIEWS = {
  groups: { name: "Groups", make: overview },
  map: { name: "Map", make: mapView },
  unsure: { name: "Unsure", make: queueView },
  check: { name: "Check", make: checkView },
  people: { name: "People", make: peopleView },
  learn: { name: "Learn", make: learnView },
  export: { name: "Export", make: exportView },
};

export class App {
  constructor() {
    this.model = new Model();
    this.job = null;
    this.jobListeners = new Set();
    this.person = localStorage.getItem("s2osc-person") ?? "";
    this.online = true;
  }

  async start() {
    this.#chrome();
    this.outbox = new Outbox(`s2osc-acts-${location.port}`, {
      done: (act, answer) => this.#done(act, answer),
      refused: (act, error) => { for (const row of act.rows ?? []) this.model.pending.delete(row); toast(error.message, { error: true }); this.model.changed(); },
      changed: () => this.#sync(),
    });
    await this.#untilLoaded();
    this.model.listeners.add(() => this.refresh());
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", (event) => this.#key(event));
    this.show();
    this.outbox.flush();
    this.#follow();
  }

  async #untilLoaded() {
    for (;;) {
      try { await this.model.load(); return; } catch (error) {
        $("main").replaceChildren(h("p", { class: "empty" }, error instanceof Refused ? error.message : "Waiting for the server …"));
        if (error instanceof Refused) { this.empty = true; return; }
        await new Promise((resolve) => setTimeout(resolve, SECOND));
      }
    }
  }

  get by() { return this.person.trim() || "me"; }

  // --- acts -------------------------------------------------------------------------------------

  act(kind, { target = "", rows = [] } = {}) {
    for (const row of rows) this.model.pending.set(row, target);
    if (rows.length) this.model.changed();
    return this.outbox.add({ kind, target, rows: [...rows], by: this.by, pool: this.model.project.pool, since: this.model.act });
  }

  label(rows, target, kind = "label") {
    this.model.selected.clear();
    return this.act(kind, { target, rows });
  }

  #done(act, answer) {
    this.model.apply(answer);
    const { done } = answer;
    const words = { undo: "Taken back", redo: "Done again" }[done.kind];
    const about = { decide: "the operating point", merge: "groups merged", split: "a group split" }[done.about];
    if (words) toast(`${words}: ${about ?? plural(done.n, "item")}`);
    else if (act.kind === "label" && done.n > 1) toast(`${plural(done.n, "item")}: ${act.target.replace(/^class /, "")}`, { action: { name: "Undo", run: () => this.act("undo") } });
    this.#sync();
  }

  // --- what others do ---------------------------------------------------------------------------

  async #follow() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, SECOND));
      try {
        const changes = await get(`/api/changes?since=${this.model.act}`);
        const was = this.online;
        this.online = true;
        this.job = changes.job ?? null;
        for (const listener of this.jobListeners) listener();
        if (!this.empty || changes.shown) {
          if (this.empty || !this.model.apply(changes)) { await this.model.load(); this.empty = false; this.show(); }
        }
        if (!was) { toast("The server is back."); this.outbox.flush(); }
      } catch (error) {
        if (!(error instanceof Refused)) this.online = false;
      }
      this.#sync();
    }
  }

  #sync() {
    const { waiting } = this.outbox ?? { waiting: 0 };
    const state = !this.online || !(this.outbox?.online ?? true) ? "offline" : waiting ? "waiting" : "saved";
    const words = { saved: "Saved", waiting: "Saving …", offline: waiting ? `No server: ${plural(waiting, "act")} wait` : "No server" };
    const element = $("sync");
    if (element.textContent !== words[state]) element.textContent = words[state];
    element.className = `sync ${state}`;
  }

  // --- views ------------------------------------------------------------------------------------

  show() {
    const [name, ...rest] = decodeURIComponent(location.hash.slice(1) || "groups").split("/");
    this.view?.close?.();
    this.model.selected.clear();
    closeItem();
    for (const link of $("tabs").children) link.toggleAttribute("aria-current", link.dataset.view === name);
    for (const link of $("tabs").children) if (link.hasAttribute("aria-current")) link.setAttribute("aria-current", "page");
    if (this.empty && name !== "learn") { location.hash = "learn"; return; }
    const make = name === "kind" || name === "search" ? galleryView : (VIEWS[name] ?? VIEWS.groups).make;
    this.view = make(this, rest.join("/"), name);
    $("main").replaceChildren(this.view.element);
    scrollTo(0, 0);
    this.refresh();
  }

  refresh() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      if (this.model.kinds) {
        if (this.model.isStale) this.model.sort();
        this.#frame();
        drawBar(this);
      }
      this.view?.draw?.();
    });
  }

  // What stands around every view.
  #frame() {
    const { project, classNames, nDisputed } = this.model, names = classNames.join("\n");
    $("title").textContent = project.title;
    if ($("names").dataset.key !== names) {
      $("names").dataset.key = names;
      $("names").replaceChildren(...classNames.map((name) => h("option", { value: name })));
    }
    $("tabs").querySelector('[data-view="people"] .count').textContent = nDisputed || "";
  }

  open(row) { openItem(this, row); }

  #chrome() {
    $("tabs").append(...Object.entries(VIEWS).map(([name, view]) =>
      h("a", { href: `#${name}`, "data-view": name }, view.name, h("span", { class: "count" }))));
    $("person").value = this.person;
    $("person").addEventListener("input", () => { this.person = $("person").value; localStorage.setItem("s2osc-person", this.person); });
    $("skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
    $("undo").addEventListener("click", () => this.act("undo"));
    $("redo").addEventListener("click", () => this.act("redo"));
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && $("search").value.trim()) location.hash = `search/${encodeURIComponent($("search").value.trim())}`;
      if (event.key === "Escape") $("search").blur();
    });
  }

  #key(event) {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const { model } = this;
    if (event.key === "z") this.act("undo");
    else if (event.key === "Z") this.act("redo");
    else if (event.key === "/") $("search").focus();
    else if (event.key === "?") location.hash = "groups";
    else if (event.key === "Escape" && model.selected.size && !$("dialog").open) { model.selected.clear(); model.changed(); }
    else if (/^[1-9]$/.test(event.key)) {
      const kind = model.classesNow[Number(event.key) - 1];
      if (!kind || !this.give(kind.id)) return;
    } else if (this.view?.key?.(event)) { /* the view took it */ } else return;
    event.preventDefault();
  }

  // Give a class to what is at hand: the open item, the selection, or the item of a task.
  give(target) {
    if (this.itemGive) return this.itemGive(target);
    if (this.view?.give) return this.view.give(target);
    if (!this.model.selected.size) return false;
    this.label([...this.model.selected], target);
    return true;
  }
}

const app = new App();
globalThis.s2osc = app;
app.start();
