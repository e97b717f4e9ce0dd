"""Every table on one page that opens offline: a search field, sections, nothing to fetch."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from s2osc.bench.tables.rendering import Block, Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 0 1rem; }
header { background: #fff; border-bottom: 1px solid #ccc; padding: .6rem 0; position: sticky;
  top: 0; }
input { font: inherit; padding: .3rem .6rem; width: min(30rem, 90%); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .3rem 0 1.2rem; }
caption { font-weight: 600; text-align: left; }
th, td { border-bottom: 1px solid #ddd; padding: .15rem .7rem .15rem 0; text-align: left;
  white-space: nowrap; }
[hidden] { display: none; }
"""
SCRIPT = """
const field = document.querySelector("input"), shown = document.querySelector("output");
const rows = [...document.querySelectorAll("tbody tr")].map(row => {
  const table = row.closest("table"), section = row.closest("section");
  const words = [section.id, table.caption?.textContent, table.tHead.textContent, row.textContent];
  return { row, table, section, text: words.join(" ").toLowerCase() };
});
function filter() {
  const wanted = field.value.toLowerCase().split(/\\s+/).filter(Boolean), kept = new Set();
  let n = 0;
  for (const { row, table, section, text } of rows) {
    row.hidden = !wanted.every(word => text.includes(word));
    if (!row.hidden) { n += 1; kept.add(table).add(section); }
  }
  for (const part of document.querySelectorAll("table, section")) part.hidden = !kept.has(part);
  shown.textContent = `${n} rows`;
}
field.addEventListener("input", filter);
filter();
"""


def to_html(title: str, sections: Mapping[str, Sequence[Block]]) -> str:
    """A section of paragraphs and tables for each name; rows are found by the words around them."""
    parts = [
        f'<section id="{escape(name)}">\n<h2>{escape(name)}</h2>\n'
        + "\n".join(map(_block, blocks))
        + "\n</section>"
        for name, blocks in sections.items()
    ]
    links = " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n"
        f"<nav>{links}</nav>\n"
        '<header><label>Rows with all of these words: <input type="search" '
        'placeholder="table1 odin MNIST" autofocus></label> <output></output></header>\n'
        + "\n".join(parts)
        + f"\n<script>{SCRIPT}</script>\n</html>\n"
    )


def _block(block: Block) -> str:
    if isinstance(block, Table):
        caption = f"<caption>{_text(block.caption)}</caption>" if block.caption else ""
        head = "".join(f"<th>{_text(cell)}</th>" for cell in block.header)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>"
            for row in block.rows
        )
        return (
            f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}\n</tbody></table></div>"
        )
    return f"<p>{_text(block)}</p>"


def _text(text: str) -> str:
    """Escaped, with ``**bold**`` in bold.

    >>> _text("**0.9** <b>")
    '<b>0.9</b> &lt;b&gt;'
    """
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
