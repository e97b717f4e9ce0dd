// The pool in the browser: columns of all items, the labels of people, and the kinds that follow.

import { columns, get } from "./api.js";
import { makeBriefs, makePictures } from "./items.js";

const SHAPES = { known: "●", new: "◆", group: "◆", unsure: "○", ignore: "×" };
const N_KNOWN = 8, N_GROUPS = 6;
const NEARLY = 1 + 1e-6; // p-values come with fewer digits than rates

export class Model {
  constructor() {
    this.act = 0;
    this.shown = "";
    this.preview = null; // the operating point while its slider moves
    this.isStale = false; // the kinds are those of another operating point
    this.listeners = new Set();
    this.selected = new Set();
    this.pending = new Map();
  }

  async load() {
    const [project, table, changes] = await Promise.all([get("/api/project"), columns("/api/columns"), get("/api/changes?since=0")]);
    if (changes.shown !== project.shown) return this.load(); // it has learnt meanwhile
    this.project = project;
    this.columns = table;
    this.shown = project.shown;
    this.n = project.n;
    this.target = new Int32Array(this.n);
    this.targets = ["none"];
    this.disputed = new Uint8Array(this.n);
    this.act = 0;
    this.points = null;
    this.mapDepth = null;
    this.kinds = null;
    this.briefs = makeBriefs();
    this.pictures = makePictures(project.pool);
    this.nDisputed = 0;
    this.selected.clear();
    this.apply(changes, false);
    return undefined;
  }

  async loadMap() {
    if (!this.points) this.points = (await columns("/api/map")).points;
    return this.points;
  }

  // What the server says has changed since ``this.act``.
  apply(changes, tell = true) {
    if (changes.shown !== this.shown) return false;
    if (changes.act < this.act) return true;
    const disputed = new Set(changes.disputed);
    const numbers = changes.targets.map((target) => this.#number(target));
    changes.rows.forEach((row, i) => {
      this.target[row] = numbers[changes.target[i]];
      this.nDisputed += disputed.has(row) - this.disputed[row];
      this.disputed[row] = disputed.has(row);
      this.pending.delete(row);
    });
    if (changes.structure) this.structure = changes.structure;
    this.people = changes.people;
    const isNew = changes.act !== this.act;
    this.act = changes.act;
    if (isNew || !this.kinds) this.sort();
    if (isNew && tell) this.changed();
    return true;
  }

  #number(target) {
    let place = this.targets.indexOf(target);
    if (place < 0) place = this.targets.push(target) - 1;
    return place;
  }

  changed() { for (const listener of this.listeners) listener(); }

  // Another operating point, which the next drawing sorts for; null: the one that was decided.
  slide(rate) {
    this.preview = rate;
    this.isStale = true;
  }

  get rate() { return this.preview ?? this.structure.operating_point; }

  // The kind of every item: groups, then classes, then what is left open. One pass over all items.
  sort() {
    const { nearest, decided, leaf, p_known } = this.columns;
    const { group_of_leaf: groupOf, n_groups: nGroups, certainty } = this.structure;
    const { classes } = this.project;
    const kinds = [];
    const add = (kind) => kinds.push({ ...kind, nLabelled: 0, index: kinds.length }) - 1;
    const group = [];
    for (let g = 0; g <= nGroups; g++) {
      const scattered = g === nGroups;
      group.push(add({
        id: `group ${g}`, type: "group", group: g, name: scattered ? "Scattered" : `Group ${g}`,
        colour: scattered ? "--unsure" : `--group-${g % N_GROUPS}`, shape: SHAPES.group,
        certainty: scattered ? 0 : certainty[g], leaf: groupOf.indexOf(g), scattered,
      }));
    }
    const known = classes.map((name, c) => add({
      id: `class ${name}`, type: "known", name, colour: `--known-${c % N_KNOWN}`, shape: SHAPES.known,
    }));
    const unsure = add({ id: "unsure", type: "unsure", name: "Unsure", colour: "--unsure", shape: SHAPES.unsure });
    const ignore = add({ id: "ignore", type: "ignore", name: "Not of interest", colour: "--unsure", shape: SHAPES.ignore });
    const classKind = new Map(classes.map((name, c) => [`class ${name}`, known[c]]));
    const ofTarget = this.targets.map((target) => {
      if (target === "none" || target === "unknown") return target;
      if (target === "ignore") return ignore;
      if (target.startsWith("leaf ")) return group[groupOf[Number(target.slice(5))]] ?? "unknown";
      if (!classKind.has(target)) {
        const name = target.slice(6);
        classKind.set(target, add({ id: target, type: "new", name, colour: `--new-${classKind.size % 4}`, shape: SHAPES.new }));
      }
      return classKind.get(target);
    });
    const rate = this.rate;
    const kindOf = new Int16Array(this.n);
    const nearestKind = Int16Array.from(known);
    const lastGroup = group[nGroups];
    for (let row = 0; row < this.n; row++) {
      const given = ofTarget[this.target[row]];
      let kind;
      if (typeof given === "number") kind = given;
      else {
        let label = decided[row];
        if (rate !== null && rate !== undefined) label = p_known[row] <= rate * NEARLY ? -1 : nearest[row];
        if (given === "unknown") label = -1;
        if (label >= 0) kind = nearestKind[label];
        else if (label === -2) kind = unsure;
        else kind = leaf[row] >= 0 ? group[groupOf[leaf[row]]] : lastGroup;
      }
      kindOf[row] = kind;
      if (this.target[row] !== 0 || this.columns.learnt[row]) kinds[kind].nLabelled++;
    }
    this.kindOf = kindOf;
    this.kinds = kinds;
    this.isStale = false;
    this.#deal();
  }

  // The rows of each kind, the surest first: groups by strangeness, all others by confidence. Both
  // orders came with the columns, so that this is one pass however the kinds change.
  #deal() {
    const { kinds, kindOf, n } = this, { by_score: byScore, by_confidence: byConfidence } = this.columns;
    const counts = new Int32Array(kinds.length + 1);
    for (let row = 0; row < n; row++) counts[kindOf[row] + 1]++;
    for (let kind = 0; kind < kinds.length; kind++) counts[kind + 1] += counts[kind];
    const rows = new Int32Array(n), next = counts.slice();
    const isGroup = Uint8Array.from(kinds, (kind) => kind.type === "group");
    for (let place = 0; place < n; place++) {
      const strange = byScore[place], sure = byConfidence[place];
      if (isGroup[kindOf[strange]]) rows[next[kindOf[strange]]++] = strange;
      if (!isGroup[kindOf[sure]]) rows[next[kindOf[sure]]++] = sure;
    }
    kinds.forEach((kind, place) => { kind.rows = rows.subarray(counts[place], counts[place + 1]); });
  }

  // Items that nobody labelled, the closest calls first, one of each kind after another.
  unsureRows(most = 500) {
    const open = [];
    for (let place = this.n - 1; place >= 0 && open.length < 4 * most; place--) {
      const row = this.columns.by_confidence[place];
      if (this.target[row] === 0 && !this.columns.learnt[row]) open.push(row);
    }
    const byKind = new Map();
    for (const row of open) {
      const kind = this.kindOf[row];
      if (!byKind.has(kind)) byKind.set(kind, []);
      byKind.get(kind).push(row);
    }
    const queues = [...byKind.values()];
    const found = [];
    for (let i = 0; found.length < Math.min(most, open.length) && queues.some((queue) => queue.length > i); i++)
      for (const queue of queues) if (queue.length > i) found.push(queue[i]);
    return found;
  }

  get groups() { return this.kinds.filter((kind) => kind.type === "group" && kind.rows.length).sort((a, b) => b.certainty - a.certainty); }
  get classesNow() { return this.kinds.filter((kind) => kind.type === "known" || (kind.type === "new" && kind.rows.length)); }
  get classNames() { return this.classesNow.map((kind) => kind.name); }
  kind(row) { return this.kinds[this.kindOf[row]]; }
  find(id) { return this.kinds.find((kind) => kind.id === id); }
  isLabelled(row) { return this.target[row] !== 0; }
  get nLabelled() { let n = 0; for (const each of this.target) n += each !== 0; return n; }
  get disputedRows() { const rows = []; this.disputed.forEach((is, row) => is && rows.push(row)); return rows; }
  picture(row, size = "small") { return `/pictures/${this.project.pool}/${row}/${size}`; }

  // What the operating point brings, from the table that came with the pool.
  pointAt(rate) {
    const { rates, unknown, false_alarms: alarms, found } = this.project.points;
    let place = 0;
    while (place + 1 < rates.length && rates[place + 1] <= rate * (1 + 1e-9)) place++;
    return { rate: rates[place], unknown: unknown[place], alarms: alarms[place], found: found[place] };
  }
}
