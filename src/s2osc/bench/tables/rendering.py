"""Paragraphs and tables -> Markdown, LaTeX, HTML. ``**bold**`` in a text is bold in all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape


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


def to_html(title: str, sections: Mapping[str, Sequence[Block]]) -> str:
    """One page that opens offline: a section for each name, and a field to search all rows."""
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["bold"] = _bold
    page = (files(__package__) / "tables.html").read_text(encoding="utf-8")
    return environment.from_string(page).render(title=title, sections=sections)


def _bold(text: str) -> Markup:
    """Escaped, with ``**bold**`` in bold.

    >>> str(_bold("**0.9** <b>"))
    '<b>0.9</b> &lt;b&gt;'
    """
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", str(escape(text))))
