"""The command tune: hyper-parameters chosen on a user's own labelled items."""

import argparse
from pathlib import Path
from typing import Any

from s2osc.cli.options import (
    add_command,
    add_force,
    add_paths,
    add_progress,
    add_reading,
    add_representation,
    add_run,
    add_tables,
    request_of,
    shown_as,
)
from s2osc.cli.printing import printer, quoted


def add_tune(commands: Any) -> None:
    parser = add_command(
        commands,
        "tune",
        tune,
        help="choose hyper-parameters on labelled items alone, for --settings of other commands",
        description="Hide some of the known classes among items of the others, answer these pools "
        "with other settings, and keep what is better beyond chance. Takes as long as you give.",
    )
    add_paths(parser, known="labelled items, in any form that classify takes")
    parser.add_argument(
        "--to",
        type=Path,
        default=Path("settings.toml"),
        help="a .toml file for the settings (default: settings.toml)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        dest="tuning_minutes",
        metavar="N",
        help="how long to try (default: 10)",
    )
    add_progress(parser)
    add_representation(parser)
    add_tables(parser)
    add_reading(parser)
    add_force(parser, "settings that are there")
    add_run(parser)


def tune(options: argparse.Namespace) -> None:
    from s2osc.app.tune import tune_files, tuned_in_words

    with shown_as(options):
        found = tune_files(
            options.known,
            options.to,
            request_of(options),
            minutes=options.tuning_minutes,
            force=options.force,
        )
    say = printer()
    for line in tuned_in_words(found):
        say(line)
    say(f"In {options.to}; to use it: s2osc classify --settings {quoted(options.to)} ...")
