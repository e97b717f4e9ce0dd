// The map of the pool: near means alike. A lasso selects.

import { h, plural } from "./dom.js";
import { content } from "./items.js";

const MARGIN = 24, NEAR = 12;

export function mapView(app) {
  const { model } = app;
  const canvas = h("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": "Map of the pool; use the galleries to select with the keyboard" });
  const tip = h("div", { class: "tip", hidden: true });
  const colour = h("select", { id: "colour", onchange: () => app.refresh() },
    h("option", { value: "kind" }, "class and group"), h("option", { value: "strange" }, "strangeness"), h("option", { value: "label" }, "labelled by people"));
  const pan = h("input", { type: "checkbox", id: "pan" });
  const legend = h("ul", { class: "legend" });
  const element = h("div", { class: "wrap wide" },
    h("div", { class: "row" }, h("label", { for: "colour" }, "Coloured by"), colour,
      h("label", { class: "check" }, pan, " move instead of lasso"),
      h("button", { type: "button", class: "quiet", onclick: () => { view = { x: 0, y: 0, scale: 1 }; app.refresh(); } }, "Whole map"),
      h("span", { class: "grow" }), h("span", { class: "soft" }, `${model.project.map}; draw around items to select them, turn the wheel to come nearer`)),
    h("div", { class: "map-frame" }, canvas, tip), legend);
  let view = { x: 0, y: 0, scale: 1 }, points = null, lasso = null, drag = null, index = null, hovered = -1;
  const resize = new ResizeObserver(() => app.refresh());
  resize.observe(canvas);
  model.loadMap().then((found) => { points = found; index = null; app.refresh(); });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 400), [x, y] = at(event);
    const scale = Math.min(60, Math.max(1, view.scale * factor)), by = scale / view.scale;
    view = { x: x - (x - view.x) * by, y: y - (y - view.y) * by, scale };
    index = null;
    app.refresh();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (pan.checked || event.button === 1) drag = { from: at(event), view: { ...view } };
    else lasso = [at(event)];
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = at(event);
    if (drag) { view = { ...drag.view, x: drag.view.x + place[0] - drag.from[0], y: drag.view.y + place[1] - drag.from[1] }; index = null; app.refresh(); }
    else if (lasso) { lasso.push(place); paintLasso(); }
    else hover(place);
  });
  canvas.addEventListener("pointerup", (event) => {
    const ended = lasso;
    if (ended && ended.length > 3 && spread(ended) > 8) select(ended, event.shiftKey);
    else if (ended) { const row = nearest(at(event)); if (row >= 0) app.open(row); }
    lasso = drag = null;
    app.refresh();
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  return { element, draw, close: () => resize.disconnect() };

  function at(event) { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }
  function frame() { return Math.min(canvas.clientWidth - 2 * MARGIN, (canvas.clientHeight - 2 * MARGIN) / depth()); }
  function depth() {
    if (!model.mapDepth) { let most = 0.2; for (let i = 1; i < points.length; i += 2) if (points[i] > most) most = points[i]; model.mapDepth = most; }
    return model.mapDepth;
  }
  function screen(row, size) {
    const left = (canvas.clientWidth - size) / 2;
    return [view.x + (left + points[2 * row] * size) * view.scale, view.y + (MARGIN + points[2 * row + 1] * size) * view.scale];
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    if (colour.value === "kind") return (row) => read(model.kind(row).colour);
    if (colour.value === "label") { const yes = read("--accent"), no = read("--faint-dot"); return (row) => (model.isLabelled(row) ? yes : no); }
    const ramp = read("--ramp").split(",").map((each) => each.trim());
    return (row) => ramp[Math.min(ramp.length - 1, Math.floor((1 - Math.pow(model.columns.p_known[row], 0.35)) * ramp.length))];
  }

  function draw() {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!points || !width) return;
    canvas.width = width * ratio; canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const size = frame(), of = colours(), known = new Map(), side = Math.max(2.5, Math.min(7, (model.n > 20000 ? 2.5 : 4) * Math.sqrt(view.scale)));
    const byColour = new Map();
    for (let row = 0; row < model.n; row++) {
      if (Number.isNaN(points[2 * row])) continue;
      const key = colour.value === "kind" ? model.kindOf[row] : null;
      let shade = key === null ? of(row) : known.get(key);
      if (shade === undefined) { shade = of(row); known.set(key, shade); }
      if (!byColour.has(shade)) byColour.set(shade, []);
      byColour.get(shade).push(row);
    }
    // What is not selected steps back.
    for (const isSelected of model.selected.size ? [false, true] : [false]) {
      context.globalAlpha = model.selected.size && !isSelected ? 0.22 : 1;
      for (const [shade, rows] of byColour) {
        context.fillStyle = shade;
        for (const row of rows) {
          if (model.selected.size && model.selected.has(row) !== isSelected) continue;
          const [x, y] = screen(row, size);
          if (x > -9 && y > -9 && x < width + 9 && y < height + 9) context.fillRect(x - side / 2, y - side / 2, side, side);
        }
      }
    }
    context.globalAlpha = 1;
    legend.replaceChildren(...(colour.value === "kind" ? model.kinds.filter((kind) => kind.rows.length).map((kind) =>
      h("li", {}, h("a", { href: `#kind/${encodeURIComponent(kind.id)}`, class: "kind", style: { "--kind": `var(${kind.colour})` } }, h("span", { class: "shape", "aria-hidden": "true" }, kind.shape), h("bdi", {}, kind.name)), h("span", { class: "soft" }, ` ${plural(kind.rows.length, "item")}`))) : []));
    if (lasso) paintLasso();
  }

  function paintLasso() {
    const context = canvas.getContext("2d"), ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    context.lineWidth = 2;
    context.beginPath();
    lasso.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }

  function select(outline, more) {
    if (!more) model.selected.clear();
    const size = frame();
    const xs = outline.map((place) => place[0]), ys = outline.map((place) => place[1]);
    const box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    for (let row = 0; row < model.n; row++) {
      if (Number.isNaN(points[2 * row])) continue;
      const [x, y] = screen(row, size);
      if (x >= box[0] && x <= box[1] && y >= box[2] && y <= box[3] && isInside(x, y, outline)) model.selected.add(row);
    }
    model.changed();
  }

  function nearest([x, y]) {
    if (!points) return -1;
    const size = frame();
    if (!index) {
      index = new Map();
      for (let row = 0; row < model.n; row++) {
        if (Number.isNaN(points[2 * row])) continue;
        const [px, py] = screen(row, size), key = `${Math.floor(px / NEAR)},${Math.floor(py / NEAR)}`;
        if (!index.has(key)) index.set(key, []);
        index.get(key).push(row);
      }
    }
    let best = -1, least = NEAR * NEAR;
    for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++)
      for (const row of index.get(`${Math.floor(x / NEAR) + i},${Math.floor(y / NEAR) + j}`) ?? []) {
        const [px, py] = screen(row, size), away = (px - x) ** 2 + (py - y) ** 2;
        if (away < least) { least = away; best = row; }
      }
    return best;
  }

  function hover(place) {
    const row = nearest(place);
    canvas.style.cursor = row >= 0 ? "pointer" : "crosshair";
    tip.hidden = row < 0;
    if (row < 0) { hovered = -1; return; }
    tip.style.transform = `translate(${Math.min(place[0] + 14, canvas.clientWidth - 150)}px, ${Math.max(0, place[1] - 60)}px)`;
    if (row === hovered) return;
    hovered = row;
    tip.replaceChildren(...(model.project.kind === "images" ? [h("img", { src: model.picture(row), alt: "", class: model.project.is_crisp ? "crisp" : "" })] : []), h("span", { class: "caption" }, model.kind(row).name));
    if (model.project.kind !== "images") model.briefs.ask(row, (brief) => { if (hovered === row) tip.append(h("span", { class: "text" }, content(brief))); });
  }
}

function spread(outline) {
  const xs = outline.map((place) => place[0]), ys = outline.map((place) => place[1]);
  return Math.max(...xs) - Math.min(...xs) + Math.max(...ys) - Math.min(...ys);
}

function isInside(x, y, outline) {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i], [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
