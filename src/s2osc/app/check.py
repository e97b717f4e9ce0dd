"""Ask a person about random items of a pool, and measure the answer by their labels.

``ask_person`` writes a table to fill in, without our answers, which would sway a person, and a
page with pictures where the items are images. ``take_labels`` reads labels. Both change the
results in one step; labels add up, and are replaced only with ``force``.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from s2osc.app.report import check_described, rewrite_results
from s2osc.app.result import Result
from s2osc.app.result_files import COPY_AGAIN, load_result
from s2osc.app.results_folder import DRAWING, ResultsFolder, results_folder
from s2osc.data.answers import label_table, read_labels
from s2osc.errors import DataError, OutputError, SettingsError
from s2osc.files import guarded, write_whole, writing
from s2osc.pipeline.audit.check import Outlook, meant_classes, outlook
from s2osc.report.check_page import check_page, is_check_page
from s2osc.report.drawing import load_drawing
from s2osc.text import match_ids, plural
from s2osc.types import UNKNOWN

CHECK = "check.csv"
LIKE = f"the {CHECK} that `s2osc check --n` wrote"
USUAL = (30, 100, 300)
"""Numbers of labels for which the width of the intervals is stated beforehand."""


class Asked(NamedTuple):
    """What a person is asked about."""

    table: Path
    page: Path | None  # with pictures; None without
    n_new: int  # items that were not asked about before
    n_open: int  # all that have no label
    result: Result
    outlooks: tuple[Outlook, ...]


class Checked(NamedTuple):
    """What became of a person's labels."""

    result: Result
    n_new: int
    n_open: int  # items without a label
    other_names: tuple[str, ...]  # labels that are no known class


def ask_person(out: Path, n: int = USUAL[0], *, table: Path | None = None) -> Asked:
    """Write the next ``n`` random items of a pool, and those without a label, to be labelled."""
    if n < 1:
        raise SettingsError(f"--n is {n}; give a number of items from 1")
    table = table or out / CHECK
    with open_result(out) as (folder, before):
        check = before.check.asked(n, n_pool=len(before.names), seed=before.run.seed)
        if not check.open_rows:
            raise DataError(f"all {len(check.rows):,} items of the pool were checked already")
        check_may_replace(table, before, out)
        result = replace(before, check=check)
        pictures = load_drawing(folder.version / DRAWING, len(result.names)).pictures_among(
            check.open_rows
        )
        page = table.with_suffix(".html") if pictures or result.texts else None
        if page:
            check_is_page(page)
        # The table comes first: a process that ends here asks the same again.
        items = {row: result.names[row] for row in check.open_rows}
        with writing(table, "make room, or give another place with --to"):
            write_whole(table, items_to_label(items, result.texts))
            if page:
                content = check_page(
                    items, pictures, result.classes, texts=result.texts, name=table.name
                )
                write_whole(page, content)
        rewrite_results(folder, result)
    return Asked(
        table=table,
        page=page,
        n_new=len(check.rows) - len(before.check.rows),
        n_open=len(items),
        result=result,
        outlooks=foresee(result, len(check.rows)),
    )


def items_to_label(items: Mapping[int, str], texts: Sequence[str] | None) -> bytes:
    """A table of items by their rows, with their texts where they have any."""
    if texts is None:
        return label_table(("item", "label"), ([item, ""] for item in items.values()))
    rows = ([item, "", texts[row]] for row, item in items.items())
    return label_table(("item", "label", "text"), rows)


def foresee(result: Result, n_asked: int) -> tuple[Outlook, ...]:
    """What the usual numbers of labels would tell, and as many as a person was asked for."""
    n_pool, is_unknown = len(result.names), result.answer.is_unknown
    numbers = sorted({n for n in (*USUAL, n_asked) if n <= n_pool})
    called = float(is_unknown.mean())
    return tuple(outlook(n, n_pool=n_pool, called_unknown=called) for n in numbers)


def take_labels(out: Path, path: Path, *, force: bool = False) -> Checked:
    """Measure the answer by the labels in a file, and by those that were read before."""
    given = {i: label for i, label in read_labels(path, like=LIKE).labels.items() if label}
    if not given:
        raise DataError(
            f"{path} holds no label; write a known class, or unknown, into its column `label`"
        )
    with open_result(out) as (folder, before):
        labels = match_rows(given, before, path)
        earlier = dict(zip(before.check.rows, before.check.labels, strict=True))
        if not force:
            check_unchanged(earlier, labels, before.names)
        check = before.check.labelled(labels)
        if check == before.check:
            result = before
        else:
            # Decided as it was: its audit then holds what was measured.
            result = replace(before, check=check).decided(before.decision)
            rewrite_results(folder, result)
    meant = meant_classes(check.labels, result.classes)
    return Checked(
        result=result,
        n_new=sum(not earlier[row] for row in labels),
        n_open=len(check.open_rows),
        other_names=tuple(label for label, c in meant.items() if c == UNKNOWN),
    )


@contextmanager
def open_result(out: Path) -> Iterator[tuple[ResultsFolder, Result]]:
    """A folder of results, locked, and what it holds."""
    with results_folder(out, update=True) as folder:
        with guarded(out, COPY_AGAIN):
            result = load_result(folder.version)
        check_described(folder)
        yield folder, result


def match_rows(given: Mapping[str, str], result: Result, path: Path) -> dict[int, str]:
    """Labels by the rows of the pool; each must have been asked about."""
    check, names = result.check, result.names
    if not check.rows:
        raise DataError(
            "nobody was asked about items of this pool yet; begin with `s2osc check --out DIR "
            "--n 30`: only labels of items drawn at random say something about the rest"
        )
    row_of = {names[row]: row for row in check.rows}
    matched = match_ids(given, row_of)
    for item in given:
        if item not in matched:
            found = "was not asked about" if item in names else "is not in the pool"
            raise DataError(
                f"item {item!r} of {path} {found}; label the items of {CHECK}, which were drawn "
                "at random, and no others"
            )
    return {row_of[matched[item]]: label for item, label in given.items()}


def check_unchanged(
    earlier: Mapping[int, str], labels: Mapping[int, str], names: list[str]
) -> None:
    for row, label in labels.items():
        if earlier[row] and earlier[row] != label:
            raise DataError(
                f"item {names[row]!r} was labelled {earlier[row]!r} before and {label!r} now; "
                "leave it as it was, or give --force to replace earlier labels"
            )


def check_may_replace(table: Path, result: Result, out: Path) -> None:
    """Refuse to write over anything but a table whose labels are all read."""
    if table.is_dir():
        raise OutputError(f"{table} is a folder; give the name of a file, such as {table / CHECK}")
    if table.suffix != ".csv":
        raise OutputError(f"--to is {table}; give a name that ends in .csv")
    if not os.path.lexists(table):
        return
    check, names = result.check, result.names
    read = {names[row]: label for row, label in zip(check.rows, check.labels, strict=True)}
    try:
        given = read_labels(table, like=LIKE).labels
        origin = match_ids(given, names)
    except DataError:
        given, origin = {"": ""}, {}
    if given.keys() != origin.keys():
        raise OutputError(
            f"{table} is there already, and no table of this check; give another name with --to"
        )
    unread = [item for item, label in given.items() if label and label != read.get(origin[item])]
    if unread:
        raise OutputError(
            f"{table} holds {plural(len(unread), 'label')} not read yet, the first of item "
            f"{unread[0]!r}; read it with `s2osc check --out {quote(str(out))} "
            f"--labels {quote(str(table))}`, or move it elsewhere"
        )


def check_is_page(page: Path) -> None:
    if os.path.lexists(page) and not is_check_page(page):
        raise OutputError(f"{page} is there already; move it, or give another name with --to")
