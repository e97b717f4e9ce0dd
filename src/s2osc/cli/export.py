"""The command that hands results on to other tools."""

import argparse
from pathlib import Path
from typing import Any

from s2osc.cli.options import add_command, add_force, add_paths, add_reading
from s2osc.errors import SettingsError
from s2osc.text import plural

FORMATS = "folders|csv|parquet|jsonl|coco|label-studio|known"


def add_export(commands: Any) -> None:
    parser = add_command(
        commands,
        "export",
        export,
        help="hand results on: class folders, tables, Label Studio, COCO, labelled items, ONNX",
        description="Write the labels of a pool, with what people corrected, in the format of "
        "another tool, or as labelled items for the next run; or the model as an ONNX file. "
        "Nothing is trained.",
    )
    add_paths(parser, results="a folder that classify or stream window wrote")
    parser.add_argument(
        "--to",
        type=Path,
        help="a folder for folders and label-studio (and for known, if the items are image files), "
        "else a file",
    )
    parser.add_argument(
        "--format",
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
    parser.add_argument(
        "--onnx",
        type=Path,
        metavar="FILE",
        help="instead of labels, the model as FILE, and what to know about it beside, in .md",
    )
    parser.add_argument(
        "--backbone",
        metavar="NAME",
        help="the pretrained network in the model, where that is not efficientnet-lite0: no other "
        "is loaded without its name",
    )
    add_reading(parser)
    add_force(parser, "an earlier export that is there")


def export(options: argparse.Namespace) -> None:
    of_labels = (options.to, options.format)
    if options.onnx:
        if any(of_labels):
            raise SettingsError("give --onnx for the model, or --to and --format for labels")
        export_model(options)
    elif all(of_labels):
        export_labels(options)
    else:
        raise SettingsError("give --to and --format for labels, or --onnx for the model")


def export_model(options: argparse.Namespace) -> None:
    from s2osc.app.export.onnx_file import export_onnx
    from s2osc.app.extract import Trusted

    trusted = Trusted(backbone=options.backbone)
    model, card = export_onnx(options.results, options.onnx, trusted=trusted, force=options.force)
    print(f"The model: {model}; what to know about it: {card}")


def export_labels(options: argparse.Namespace) -> None:
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
    print(f"{plural(done.n_items, 'item')}, {done.n_by_person:,} labelled by people: {done.place}")
