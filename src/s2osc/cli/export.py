"""The command that hands results on to other tools."""

import argparse
from pathlib import Path
from typing import Any

from s2osc.cli.options import add_command, add_force, add_paths, add_reading

FORMATS = "folders|csv|parquet|jsonl|coco|label-studio|known"


def add_export(commands: Any) -> None:
    parser = add_command(
        commands,
        "export",
        export,
        help="hand results on: class folders, tables, Label Studio, COCO, labelled items",
        description="Write the labels of a pool, with what people corrected, in the format of "
        "another tool, or as labelled items for the next run. Nothing is trained.",
    )
    add_paths(
        parser,
        results="a folder that classify or stream window wrote",
        to="a folder for folders and label-studio (and for known, if the items are image files), "
        "else a file",
    )
    parser.add_argument(
        "--format",
        required=True,
        metavar=FORMATS,
        help="a folder per class and group; a table with who labelled what when; COCO's JSON for "
        "images; tasks of Label Studio with predictions; or the labelled items with those that "
        "people named, for `classify --known`",
    )
    parser.add_argument(
        "--corrections",
        type=Path,
        metavar="FILE",
        help="a CSV file with the columns item and label (and by and at): these go before the "
        "answers of the run",
    )
    parser.add_argument("--pool", type=Path, help="where the items lie now, if they were moved")
    parser.add_argument("--known", type=Path, help="likewise the labelled items, for known")
    parser.add_argument("--link", action="store_true", help="links in folders instead of copies")
    add_reading(parser)
    add_force(parser, "an earlier export that is there")


def export(options: argparse.Namespace) -> None:
    from s2osc.app.corrections import NO_CORRECTIONS
    from s2osc.app.export.job import Files, export_results
    from s2osc.progress import shown

    files = Files(
        known=options.known,
        pool=options.pool,
        link=options.link,
        max_megapixels=options.max_megapixels,
    )
    with shown():
        done = export_results(
            options.results,
            options.to,
            options.format,
            corrections=options.corrections or NO_CORRECTIONS,
            files=files,
            force=options.force,
        )
    print(f"{done.n_items:,} items, {done.n_by_person:,} labelled by people: {done.place}")
