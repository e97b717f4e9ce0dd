"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const canvas = find("#map"), context = canvas.getContext("2d");
  const stage = find("#stage"), card = find("#card"), dialog = find("#dialog");
  const sprite = find("#sprite");
  const n = data.x.length;
  const paths = Object.fromEntries(Object.entries(data.shapes).map(([name, d]) => [name, new Path2D(d)]));
  const extent = [Math.max(...data.x), Math.max(...data.y)];
  const places = data.x.map((_, i) => i);
  // Groups are drawn last, so that a few unknowns are not lost under many knowns.
  const layers = { known: 0, unsure: 1, unknown: 2 };
  const layer = (kind) => layers[kind.side];
  const painting = [...places].sort((a, b) => layer(data.kinds[data.kind[a]]) - layer(data.kinds[data.kind[b]]));
  const ranks = { confidence: rank(data.confidence), w: rank(data.w) };
  const hidden = new Set();
  let selected = null, hovered = null, colourBy = "answer", pictures = false;
  let view = { zoom: 1, x: 0, y: 0 };
  let size = { width: 1, height: 1 }, theme;

  function rank(values) {
    const order = [...places].sort((a, b) => (values[a] ?? Infinity) - (values[b] ?? Infinity));
    const ranks = new Array(n);
    order.forEach((item, place) => { ranks[item] = n > 1 ? place / (n - 1) : 0.5; });
    return ranks;
  }

  // What is shown

  const isShown = (i) => !hidden.has(data.kind[i]);
  const isActive = (i) => isShown(i) && (selected === null || data.kind[i] === selected);

  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    theme = {
      ink: read("--ink"), halo: read("--halo"), faint: read("--faint-dot"), soft: read("--soft"),
      font: getComputedStyle(document.body).fontFamily,
      kinds: data.kinds.map((kind) => read(kind.colour)),
      ramp: ramp(read("--ramp").split(",")),
    };
  }

  function ramp(stops) {
    const strip = new OffscreenCanvas(256, 1).getContext("2d");
    const gradient = strip.createLinearGradient(0, 0, 256, 0);
    stops.forEach((stop, i) => gradient.addColorStop(i / (stops.length - 1), stop.trim()));
    strip.fillStyle = gradient;
    strip.fillRect(0, 0, 256, 1);
    const pixels = strip.getImageData(0, 0, 256, 1).data;
    return (share) => {
      const at = 4 * Math.round(255 * share);
      return `rgb(${pixels[at]} ${pixels[at + 1]} ${pixels[at + 2]})`;
    };
  }

  const colourOf = (i) => colourBy === "answer" ? theme.kinds[data.kind[i]] : theme.ramp(ranks[colourBy][i]);

  // The map

  function position(i) {
    const margin = size.width < 500 ? 12 : 24, lengths = [size.width, size.height];
    const scales = lengths.map((length, axis) => (length - 2 * margin) / (extent[axis] || 1));
    return [data.x, data.y].map((values, axis) => {
      // Axes have no meaning here, so one may be stretched a little to fill the page.
      const scale = Math.min(scales[axis], 1.35 * Math.min(...scales));
      const start = (lengths[axis] - extent[axis] * scale) / 2;
      return (start + values[i] * scale) * view.zoom + (axis ? view.y : view.x);
    });
  }

  function radius() {
    const base = Math.max(1.7, Math.min(7, 0.17 * Math.sqrt(size.width * size.height / n)));
    return base * Math.sqrt(view.zoom);
  }

  function resize() {
    const box = stage.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    size = { width: box.width, height: box.height };
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    draw();
  }

  function draw() {
    const ratio = canvas.width / size.width;
    const restore = () => context.setTransform(ratio, 0, 0, ratio, 0, 0);
    restore();
    context.clearRect(0, 0, size.width, size.height);
    context.lineJoin = "round";
    const shown = painting.filter(isShown);
    const faint = shown.filter((i) => !isActive(i)), active = shown.filter(isActive);
    faint.forEach((i) => drawMark(i, theme.faint, null, ratio));
    active.forEach((i) => drawItem(i, ratio));
    if (hovered !== null) drawMark(hovered, colourOf(hovered), theme.ink, ratio, 1.9);
    restore();
    if (!pictures) drawLabels();
  }

  function drawItem(i, ratio) {
    if (pictures) drawPicture(i, ratio);
    else drawMark(i, colourOf(i), data.kinds[data.kind[i]].side === "unknown" ? theme.halo : null, ratio);
  }

  function drawMark(i, fill, outline, ratio, grow = 1) {
    const kind = data.kinds[data.kind[i]], [x, y] = position(i);
    const r = radius() * grow * (kind.side === "unknown" ? 1.3 : 1);
    context.setTransform(ratio * r, 0, 0, ratio * r, ratio * x, ratio * y);
    context.fillStyle = fill;
    if (outline) {
      context.strokeStyle = outline;
      context.lineWidth = (grow > 1 ? 3.2 : 1.6) / r;
      context.stroke(paths[kind.shape]);
    }
    context.fill(paths[kind.shape]);
  }

  function drawPicture(i, ratio) {
    const [x, y] = position(i), { width, height } = data.sprite;
    const side = Math.max(14, Math.min(48, 4.6 * radius())) / Math.max(width, height);
    const w = width * side, h = height * side;
    context.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio);
    context.fillStyle = colourOf(i);
    context.fillRect(-w / 2 - 1.5, -h / 2 - 1.5, w + 3, h + 3);
    drawSprite(context, i, -w / 2, -h / 2, w, h);
  }

  function drawSprite(target, i, x, y, w, h) {
    const { width, height, columns } = data.sprite;
    const left = i % columns * width, top = Math.floor(i / columns) * height;
    target.drawImage(sprite, left, top, width, height, x, y, w, h);
  }

  function drawLabels() {
    context.font = `600 13px ${theme.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const taken = [];
    const kinds = data.kinds.map((_, k) => k).sort((a, b) => layer(data.kinds[b]) - layer(data.kinds[a]) || data.kinds[b].count - data.kinds[a].count);
    for (const k of kinds) {
      // Unsure items lie everywhere: a label would name a place that is another kind's.
      if (data.kinds[k].side === "unsure") continue;
      const members = places.filter((i) => data.kind[i] === k && isActive(i)).map(position);
      if (!members.length) continue;
      const text = shorten(data.kinds[k].name, 20);
      let [x, y] = heart(members);
      if (n < 100) y -= radius() + 14;
      const half = context.measureText(text).width / 2 + 4;
      const box = [x - half, y - 10, x + half, y + 10];
      const isInside = box[0] > 0 && box[2] < size.width && box[1] > 0 && box[3] < size.height;
      const isFree = taken.every((b) => box[2] < b[0] || box[0] > b[2] || box[3] < b[1] || box[1] > b[3]);
      if (!isInside || !isFree) continue;
      taken.push(box);
      context.strokeStyle = theme.halo;
      context.lineWidth = 4;
      context.strokeText(text, x, y);
      context.fillStyle = theme.ink;
      context.fillText(text, x, y);
    }
  }

  // The member nearest to the middle: where a kind lies in two places, its label stands in one.
  function heart(members) {
    const middle = [0, 1].map((axis) => members.map((p) => p[axis]).sort((a, b) => a - b)[members.length >> 1]);
    const distance = (p) => Math.hypot(p[0] - middle[0], p[1] - middle[1]);
    return members.reduce((best, p) => distance(p) < distance(best) ? p : best);
  }

  const shorten = (text, most) => [...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text;

  function nearest(x, y, reach) {
    let best = null, least = reach;
    for (const i of painting) {
      if (!isActive(i)) continue;
      const [px, py] = position(i), distance = Math.hypot(px - x, py - y);
      if (distance <= least) { best = i; least = distance; }
    }
    return best;
  }

  // One item in words

  const number = (value) => value === null ? "–" : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));

  function describe(i, target) {
    const kind = data.kinds[data.kind[i]];
    const facts = [["Confidence", number(data.confidence[i])], ["Unknown score", number(data.score[i])], ["Distinctness", number(data.w[i])]];
    if (data.p_known) facts.push(["p_known", number(data.p_known[i])]);
    if (data.truth) facts.push(["Truth", data.truth[i]]);
    if (data.filtered[i]) facts.push(["D_out", "yes"]);
    find(".item-name", target).textContent = data.name[i];
    find(".item-text", target).textContent = data.text ? data.text[i] : "";
    find(".item-kind", target).replaceChildren(swatch(kind), (kind.side === "unknown" ? "Unknown, " : "") + kind.name);
    find("dl", target).replaceChildren(...facts.flatMap(([term, text]) => [element("dt", term), element("dd", text)]));
  }

  function element(tag, text) {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  function swatch(kind) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg"), use = document.createElementNS(space, "use");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("viewBox", "-1.2 -1.2 2.4 2.4");
    svg.style.color = `var(${kind.colour})`;
    use.setAttribute("href", `#shape-${kind.shape}`);
    svg.append(use);
    return svg;
  }

  function paintThumbnail(target, i) {
    target.width = data.sprite.width;
    target.height = data.sprite.height;
    drawSprite(target.getContext("2d"), i, 0, 0, target.width, target.height);
  }

  function hover(i) {
    if (i === hovered) return;
    hovered = i;
    card.hidden = i === null;
    draw();
    if (i === null) return;
    describe(i, card);
    if (data.sprite) paintThumbnail(find("canvas", card), i);
    placeCard(...position(i));
  }

  function placeCard(x, y) {
    const width = card.offsetWidth, height = card.offsetHeight, gap = 18;
    if (window.matchMedia("(max-width: 640px)").matches) {
      card.style.transform = `translateY(${y > size.height / 2 ? 0 : size.height - height}px)`;
      return;
    }
    const left = x + gap + width < size.width ? x + gap : x - gap - width;
    const top = Math.max(0, Math.min(size.height - height, y - height / 2));
    card.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }

  function open(i, picture) {
    describe(i, dialog);
    find(".dialog-picture", dialog).replaceChildren(...(picture ? [picture] : []));
    dialog.showModal();
  }

  // Moving about the map

  function zoomAt(factor, x, y) {
    const zoom = factor ? Math.max(1, Math.min(24, view.zoom * factor)) : 1;
    const ratio = zoom / view.zoom;
    view = { zoom, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio };
    settle();
  }

  function settle() {
    const keep = (value, length) => Math.min(0, Math.max(length * (1 - view.zoom), value));
    view.x = keep(view.x, size.width);
    view.y = keep(view.y, size.height);
    canvas.classList.toggle("is-zoomed", view.zoom > 1);
    hover(null);
    draw();
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { from: at(event), view: { ...view }, moved: false };
    if (view.zoom > 1) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drag && view.zoom > 1) {
      drag.moved ||= Math.hypot(x - drag.from[0], y - drag.from[1]) > 4;
      view = { zoom: view.zoom, x: drag.view.x + x - drag.from[0], y: drag.view.y + y - drag.from[1] };
      settle();
    } else if (event.pointerType === "mouse") {
      hover(nearest(x, y, 16));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) hover(nearest(...at(event), event.pointerType === "mouse" ? 16 : 30));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hover(null); });
  canvas.addEventListener("blur", () => hover(null));
  canvas.addEventListener("dblclick", (event) => zoomAt(2, ...at(event)));
  canvas.addEventListener("wheel", (event) => {
    // A bare wheel scrolls the page; pinching on a touchpad arrives as a wheel with ctrl.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY / 150), ...at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hover(null);
    const order = places.filter(isActive).sort((a, b) => data.x[a] - data.x[b]);
    if (!step || !order.length) return;
    event.preventDefault();
    const from = hovered === null ? (step > 0 ? -1 : 0) : order.indexOf(hovered);
    hover(order[(from + step + order.length) % order.length]);
  });
  all("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
    zoomAt(Number(button.dataset.zoom), size.width / 2, size.height / 2);
  }));

  // Choosing what is shown

  const press = (button, isOn) => button.setAttribute("aria-pressed", String(isOn));

  function refresh() {
    all("[data-toggle]").forEach((chip) => press(chip, !hidden.has(Number(chip.dataset.toggle))));
    all("[data-select]").forEach((row) => press(row, Number(row.dataset.select) === selected));
    all("[data-kind]").forEach((tile) => {
      tile.hidden = selected !== null && Number(tile.dataset.kind) !== selected;
    });
    all(".tiles").forEach((tiles) => {
      tiles.hidden = [...tiles.children].every((tile) => tile.hidden);
      tiles.nextElementSibling.hidden = !tiles.hidden;
    });
    const bar = find("#selection");
    bar.hidden = selected === null;
    if (selected !== null) find("bdi", bar).textContent = data.kinds[selected].name;
    showPicked();
    hover(null);
    draw();
  }

  function showPicked() {
    const picked = find("#picked");
    const members = selected === null || !data.sprite ? [] : places.filter(isActive).slice(0, 40);
    picked.hidden = !members.length;
    picked.replaceChildren(...members.map((i) => {
      const button = element("button", ""), thumbnail = element("canvas", "");
      button.type = "button";
      button.title = data.name[i];
      button.setAttribute("aria-label", data.name[i]);
      button.addEventListener("click", () => openSprite(i));
      thumbnail.className = find("canvas", card).className;
      paintThumbnail(thumbnail, i);
      button.append(thumbnail);
      return button;
    }));
  }

  function openSprite(i) {
    const picture = element("canvas", "");
    picture.className = find("canvas", card).className;
    paintThumbnail(picture, i);
    open(i, picture);
  }

  function select(kind) {
    selected = kind === selected ? null : kind;
    hidden.delete(selected);
    refresh();
  }

  all("[data-select]").forEach((row) => row.addEventListener("click", () => select(Number(row.dataset.select))));
  find("#selection button").addEventListener("click", () => select(selected));
  all("[data-toggle]").forEach((chip) => chip.addEventListener("click", () => {
    const kind = Number(chip.dataset.toggle);
    if (!hidden.delete(kind)) hidden.add(kind);
    refresh();
  }));
  all("[data-show]").forEach((chip) => chip.addEventListener("click", () => {
    hidden.clear();
    data.kinds.forEach((kind, k) => {
      if (chip.dataset.show !== "all" && chip.dataset.show !== kind.side) hidden.add(k);
    });
    refresh();
  }));
  all("[data-colour]").forEach((button) => button.addEventListener("click", () => {
    colourBy = button.dataset.colour;
    all("[data-colour]").forEach((other) => press(other, other === button));
    find("#ramp").hidden = colourBy === "answer";
    draw();
  }));
  find("#pictures")?.addEventListener("click", (event) => {
    pictures = !pictures;
    press(event.currentTarget, pictures);
    draw();
  });
  all("[data-item]").forEach((tile) => tile.addEventListener("click", () => {
    open(Number(tile.dataset.item), find("img", tile)?.cloneNode());
  }));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  // The operating curve

  const choices = all("[name='operating-point']");

  function showChoice(choice) {
    const point = data.points[Number(choice.value)];
    find("#choice-figures").replaceChildren(...point.figures.map(([term, text]) => {
      const row = element("div", "");
      row.append(element("dt", term), element("dd", text));
      return row;
    }));
    find("#choice-now").hidden = Boolean(point.command);
    find("#choice-command").hidden = !point.command;
    // Each option stays whole where a line breaks.
    const parts = point.command.split(/ (?=--)/);
    find("#command").replaceChildren(...parts.flatMap((part, i) => i ? [" ", element("span", part)] : [element("span", part)]));
    find("#copied").textContent = "";
  }

  // Pointing near a point is enough: fingers are wider than points.
  function chooseNearest(event) {
    const distance = (choice) => {
      const box = choice.getBoundingClientRect();
      return Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
    };
    const choice = choices.reduce((best, other) => distance(other) < distance(best) ? other : best);
    choice.checked = true;
    choice.focus({ preventScroll: true });
    showChoice(choice);
  }

  async function copyCommand() {
    const command = find("#command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      find("#copied").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      find("#copied").textContent = "Selected: copy it with Ctrl+C";
    }
  }

  choices.forEach((choice) => choice.addEventListener("change", () => showChoice(choice)));
  find("#choices")?.addEventListener("click", (event) => { if (!choices.includes(event.target)) chooseNearest(event); });
  find("#copy")?.addEventListener("click", copyCommand);
  // A browser may restore an earlier choice when the page is opened again.
  choices.filter((choice) => choice.checked).forEach(showChoice);

  readTheme();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); draw(); });
  new ResizeObserver(resize).observe(stage);
  sprite?.decode().then(draw);
})();
