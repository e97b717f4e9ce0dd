"""`s2osc data`: the data sets of the experiments."""

import argparse
from typing import Any

from s2osc.cli.options import add_folder


def add_data(commands: Any) -> None:
    parser = commands.add_parser("data", help="list and fetch the data sets of the experiments")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="which data sets there are, and which are here")
    listing.set_defaults(command=list_data)
    fetching = actions.add_parser("fetch", help="download the official files, or take what is here")
    fetching.set_defaults(command=fetch_data)
    fetching.add_argument("name", nargs="+")
    for action in (listing, fetching):
        add_folder(action)


def list_data(options: argparse.Namespace) -> None:
    from s2osc.data.datasets import describe_datasets

    for status in describe_datasets(options.folder):
        print(f"{status.name:<16} {status.title:<40} {status.size:<10} {status.where}")


def fetch_data(options: argparse.Namespace) -> None:
    from s2osc.data.datasets import fetch_dataset
    from s2osc.progress import shown

    for name in options.name:
        with shown():
            path = fetch_dataset(name, options.folder)
        print(f"{name}: {path}")
