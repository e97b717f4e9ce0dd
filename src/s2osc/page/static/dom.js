// Elements from plain calls. Text is always text: nothing here reads HTML.

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "style") for (const [p, v] of Object.entries(value)) element.style.setProperty(p, v);
    else if (key in element && key !== "list" && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (id) => document.getElementById(id);

const { format } = new Intl.NumberFormat("en");
export const number = (value) => format(value);

export const plural = (n, word, words = `${word}s`) => `${number(n)} ${n === 1 ? word : words}`;

export function percent(share) {
  if (share === 0) return "0 %";
  const value = share * 100;
  return `${value >= 10 ? Math.round(value) : Number(value.toPrecision(2))} %`;
}

export function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.round(passed / 60)} min ago`;
  return new Date(seconds * 1000).toLocaleString();
}

export function toast(text, { error = false, action = null } = {}) {
  const box = h("div", { class: error ? "toast error" : "toast" }, h("span", {}, text));
  if (action) box.append(h("button", { type: "button", onclick: () => { action.run(); box.remove(); } }, action.name));
  $("toasts").append(box);
  setTimeout(() => box.remove(), error ? 8000 : 4000);
}

// A plain table; the first cell of each row is its heading.
export function table(headings, rows, caption = null) {
  const cells = (row) => row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, h("bdi", {}, cell)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? headings.join(", ") }, h("table", { class: "plain" }, caption ? h("caption", {}, caption) : null,
    h("thead", {}, h("tr", {}, headings.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
}

// A name as people type it, with suggestions.
export function nameField(label, submit, { value = "", placeholder = "name it" } = {}) {
  const input = h("input", {
    type: "text", list: "names", maxlength: "200", placeholder, "aria-label": label, autocomplete: "off", value,
  });
  const form = h("form", { class: "name", onsubmit: (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (name) { submit(name); input.value = ""; input.blur(); }
  } }, input, h("button", { type: "submit", class: "small" }, "Name"));
  return form;
}
