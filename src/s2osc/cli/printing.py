"""What commands print: the answer in a few lines, names as they are, paths as shells take them."""

import os
import shlex
import string
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from s2osc.text import plural, shortened

if TYPE_CHECKING:
    from rich.table import Table

    from s2osc.app.summary import Summary
    from s2osc.pipeline.grouping.typical import GroupProfile

MOST_ROWS = 30
"""Classes or groups that a printed table names."""
MOSTLY = 0.5
"""Of the items of a group, from which on their nearest known class is named."""
LONGEST_WORDS = 50
"""Characters of what is typical of a group."""


def show_result(summary: "Summary", out: Path, *, seconds: float) -> None:
    """Print the audit's sentence, a small table of what was found, and where everything lies."""
    say = printer()
    _show_found(summary)
    if values := summary.metrics:
        shown = (name for name in ("accuracy", "f1", "f_out") if name in values)
        figures = ", ".join(f"{name} {values[name]:.3f}" for name in shown)
        say(f"Against the truth the pool came with: {figures}")
    say(f"Took {seconds:.{0 if seconds >= 10 else 1}f} s. In {out}:")
    for name, what in (
        ("report.html", "the page to look at"),
        ("predictions.csv", "one row per item (also predictions.parquet)"),
        ("summary.json", "counts, audit, settings, seconds, metrics"),
        ("model/", "for `s2osc predict`"),
    ):
        say(f"  {name:<18} {what}")
    if summary.audit:
        command = f"s2osc decide --out {quoted(out)} --false-alarm RATE"
        say(f"  {'scores.parquet':<18} for `{command}`")
        if summary.audit.groups and summary.counts.groups:
            command = f"s2osc decide --out {quoted(out)} --groups N"
            say(f"Other groups: `{command}`; --merge A,B makes one of two, --split A two of one")
        if not summary.audit.checked:
            say(f"To measure the answer by 30 labels of yours: s2osc check --out {quoted(out)}")
        say(f"To name, correct and go on in a browser: s2osc page --results {quoted(out)}")


def show_parts(summary: "Summary", out: Path) -> None:
    """The same for a pool that was read in parts."""
    say = printer()
    _show_found(summary)
    seconds = sum(summary.run.seconds.values())
    n_answered = summary.parts.rows["answer"] if summary.parts else summary.n_pool
    rate = n_answered / max(summary.run.seconds.get("answer", seconds), 1e-9)
    say(f"Took {seconds:.{0 if seconds >= 10 else 1}f} s, answers at {rate:,.0f} rows/s. In {out}:")
    for name, what in (
        ("predictions/", "one row per item, as a Parquet data set"),
        ("summary.json", "counts, audit, settings, seconds and rows per step"),
        ("model/", "for `s2osc predict` and `s2osc serve`"),
    ):
        say(f"  {name:<18} {what}")


def _show_found(summary: "Summary") -> None:
    """The audit's sentence, a small table, and notes."""
    from rich.table import Table

    from s2osc.pipeline.audit.groups_in_words import number_of_groups, what_speaks
    from s2osc.pipeline.audit.wording import limit, sentence, verdict

    say = printer()
    counts, audit = summary.counts, summary.audit
    if audit:
        say(sentence(audit), style="bold")
        say(verdict(audit.test))
        if limited := limit(audit):
            say(limited)
    table = Table(title=f"{plural(summary.n_pool, 'item')} in the pool")
    table.add_column("answer")
    table.add_column("items", justify="right")
    _add_counts(table, counts.known, "{}", "classes")
    scattered = audit.groups.number if audit and audit.groups else None
    profiles = {
        _group_name(each.group, scattered): each
        for each in summary.profiles
        if each.group != scattered  # nothing is typical of items that have nothing in common
    }
    groups = {_group_name(int(group), scattered): n for group, n in counts.groups.items()}
    _add_counts(table, groups, "unknown, {}", "groups", words=profiles, style="bold")
    if counts.unsure:
        table.add_row("unsure", f"{counts.unsure:,}", style="italic")
    say(table, soft_wrap=False)
    if audit and audit.groups and counts.groups:
        say(number_of_groups(audit.groups), style="bold")
        for number, words in what_speaks(audit.groups).items():
            say(f"  {number}: {words}")
    for warning in summary.warnings:
        say(f"Note: {warning}", style="yellow")


def _group_name(group: int, scattered: int | None) -> str:
    """The number after the last group is that of items in no group.

    >>> _group_name(1, scattered=1), _group_name(1, scattered=None)
    ('scattered', 'group 1')
    """
    return "scattered" if group == scattered else f"group {group}"


def _add_counts(
    table: "Table",
    counts: dict[str, int],
    wording: str,
    what: str,
    *,
    words: Mapping[str, "GroupProfile"] | None = None,
    style: str | None = None,
) -> None:
    """A row for each class or group; of very many, those with the most items."""
    about = {name: _about(profile) for name, profile in (words or {}).items()}
    largest = sorted(counts, key=lambda name: -counts[name])
    rest = largest[MOST_ROWS:]
    for name in largest[:MOST_ROWS] if rest else counts:
        table.add_row(wording.format(name) + about.get(name, ""), f"{counts[name]:,}", style=style)
    if rest:
        n_items = sum(counts[name] for name in rest)
        table.add_row(f"... and {len(rest):,} more {what}, see predictions.csv", f"{n_items:,}")


def _about(profile: "GroupProfile") -> str:
    """What to start the name of a group from: the nearest known class, and what is typical.

    >>> from s2osc.pipeline.grouping.typical import GroupProfile
    >>> _about(GroupProfile(0, 9, "owl", 0.9, ("beak", "wing"), ()))
    ', near owl: beak, wing'
    >>> _about(GroupProfile(0, 9, "owl", 0.4, (), ()))
    ''
    """
    near = f", near {profile.nearest}" if profile.nearest_share >= MOSTLY else ""
    typical = shortened(", ".join(profile.typical), LONGEST_WORDS)
    return f"{near}: {typical}" if typical else near


def printer() -> Callable[..., None]:
    """A function that prints names as they are, and never breaks them over lines."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    return partial(console.print, soft_wrap=True)


def quoted(path: Path) -> str:
    """A path as a shell takes it; bytes that are no text, as bash writes them.

    >>> quoted(Path("my results")), quoted(Path("caf\\udce9"))
    ("'my results'", "$'caf\\\\xe9'")
    """
    text = str(path)
    if text.isprintable():
        return shlex.quote(text)
    plain = set(string.ascii_letters + string.digits + "/._-")
    content = "".join(
        chr(byte) if chr(byte) in plain else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )
    return f"$'{content}'"
