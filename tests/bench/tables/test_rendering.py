"""The same blocks in Markdown and in LaTeX."""

import pytest

from s2osc.bench.tables.rendering import Table, escape_latex, to_latex, to_markdown

TABLE = Table(("method", "A & B"), (("f_out", "**0.5** ± 0.1"), ("x", "–")), "50 % of it")


def test_markdown_has_a_bold_caption_and_empty_lines_between():
    assert to_markdown(["Text.", TABLE, "End."]) == (
        "Text.\n\n**50 % of it**\n\n| method | A & B |\n| --- | --- |\n"
        "| f_out | **0.5** ± 0.1 |\n| x | – |\n\nEnd."
    )


def test_latex_is_a_plain_tabular():
    assert to_latex(["50 % of #1.", TABLE]) == (
        "50 \\% of \\#1.\n\n"
        "\\noindent\\textbf{50 \\% of it}\n\n"
        "\\begin{tabular}{ll}\n"
        "method & A \\& B \\\\\n"
        "\\hline\n"
        "f\\_out & \\textbf{0.5} $\\pm$ 0.1 \\\\\n"
        "x & -- \\\\\n"
        "\\end{tabular}"
    )
    assert "textbf" not in to_latex([Table(("a",), (("b",),))])


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (r"a\b", r"a\textbackslash{}b"),
        ("{x}", r"\{x\}"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        ("1 < 2 | 3 > 2", r"1 \textless{} 2 \textbar{} 3 \textgreater{} 2"),
        ("100 $ & 5 %", r"100 \$ \& 5 \%"),
        ("**a** and **b**", r"\textbf{a} and \textbf{b}"),
    ],
)
def test_every_sign_is_printed_and_none_obeyed(text, escaped):
    assert escape_latex(text) == escaped
