"use strict";
const button = document.getElementById("save");
const fields = [...document.querySelectorAll("input[data-item]")];

function cell(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

function count() {
  const n = fields.filter((field) => field.value.trim()).length;
  document.getElementById("done").textContent = `${n} of ${fields.length} labelled`;
}

button.addEventListener("click", () => {
  const rows = fields.map((field) => `${cell(field.dataset.item)},${cell(field.value.trim())}`);
  const table = new Blob([["\ufeffitem,label", ...rows, ""].join("\r\n")], { type: "text/csv" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(table);
  link.download = button.dataset.name;
  link.click();
  URL.revokeObjectURL(link.href);
});
document.addEventListener("input", count);
count();
