"""Paragraphs and tables -> Markdown, LaTeX, HTML. ``**bold**`` in a text is bold in all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; what it shows, unless the paragraph before says so."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    n_labels: int = 1  # columns that name a row


Block = str | Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "–": "--",
    "…": r"\dots{}",
} | {sign: f"\\{sign}" for sign in "&%$#_"}


def to_markdown(blocks: Sequence[Block]) -> str:
    """Everything, with an empty line between.

    >>> print(to_markdown(["All:", Table(("a", "b"), (("1", "2"),))]))
    All:
    <BLANKLINE>
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n\n".join(b if isinstance(b, str) else _markdown_table(b) for b in blocks)


def _markdown_table(table: Table) -> str:
    lines = [table.header, ("---",) * len(table.header), *table.rows]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"**{table.caption}**\n\n{text}" if table.caption else text


def to_latex(blocks: Sequence[Block]) -> str:
    """Paragraphs and plain tabulars, which need no package."""
    return "\n\n".join(escape_latex(b) if isinstance(b, str) else _tabular(b) for b in blocks)


def _tabular(table: Table) -> str:
    lines = [" & ".join(map(escape_latex, cells)) + r" \\" for cells in (table.header, *table.rows)]
    lines.insert(1, r"\hline")
    columns = "l" * len(table.header)
    text = "\n".join([rf"\begin{{tabular}}{{{columns}}}", *lines, r"\end{tabular}"])
    return (
        f"\\noindent\\textbf{{{escape_latex(table.caption)}}}\n\n{text}" if table.caption else text
    )


def escape_latex(text: str) -> str:
    r"""The text as LaTeX prints it.

    >>> print(escape_latex("**50 %** ± 2 of f_out"))
    \textbf{50 \%} $\pm$ 2 of f\_out
    """
    escaped = "".join(_LATEX.get(sign, sign) for sign in text)
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", escaped)


# HTML

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
  const wanted = field.value.toLowerCase().split(/\\s+/).filter(Boolean), matched = new Set();
  let n = 0;
  for (const { row, table, section, text } of rows) {
    row.hidden = !wanted.every(word => text.includes(word));
    if (!row.hidden) { n += 1; matched.add(table).add(section); }
  }
  for (const part of document.querySelectorAll("table, section")) part.hidden = !matched.has(part);
  shown.textContent = `${n} rows`;
}
field.addEventListener("input", filter);
filter();
"""


def to_html(title: str, sections: Mapping[str, Sequence[Block]]) -> str:
    """One page that opens offline: a section for each name, and a field to search all rows."""
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
