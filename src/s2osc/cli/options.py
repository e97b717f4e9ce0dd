"""Options that several commands share, and the objects they stand for."""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.settings import FIT_ON, NamedSettings

if TYPE_CHECKING:
    from s2osc.app.extract import Trusted
    from s2osc.app.request import Request
    from s2osc.engine.engine import Engine
    from s2osc.engine.ray_engine import RayEngine


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], **words: str
) -> argparse.ArgumentParser:
    """A command that calls ``run`` with its options; ``words`` are its help."""
    parser: argparse.ArgumentParser = commands.add_parser(name, **words)
    parser.set_defaults(command=run)
    return parser


def add_paths(parser: argparse.ArgumentParser, **options: str) -> None:
    """Options that take a path and must be given, with their help."""
    for name, words in options.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=words)


def item_address(text: str) -> Path | str:
    """A path, or an address elsewhere, which is no path.

    >>> item_address("s3://bucket/pool"), item_address("pool.csv").name
    ('s3://bucket/pool', 'pool.csv')
    """
    return text if "://" in text else Path(text)


def add_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--progress",
        choices=("auto", "json"),
        default="auto",
        help="how progress is shown: bars on a terminal and a line every ten seconds elsewhere "
        "(auto), or JSON lines on standard error (json)",
    )


def add_engine(
    parser: argparse.ArgumentParser,
    *,
    what: str = "where the parts of a pool, or the runs of an experiment, are worked on",
    workers: str = "of Ray (default: one for every CPU)",
) -> None:
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help=f"{what}: in this process (local), or by workers of Ray, which needs "
        "`pip install 's2osc[ray]'`",
    )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="of a cluster that runs already, such as 10.0.0.1:6379 or auto (default: Ray is "
        "started here)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help=workers)


def engine_of(options: argparse.Namespace) -> "Engine":
    from s2osc.engine.engine import LocalEngine

    return ray_of(options) or LocalEngine()


def ray_of(options: argparse.Namespace) -> "RayEngine | None":
    """Ray, if that was asked for."""
    if options.engine == "local":
        for name, value in (("--ray-address", options.ray_address), ("--workers", options.workers)):
            if value is not None:
                raise SettingsError(f"{name} is {value}, but --engine is local; give --engine ray")
        return None
    from s2osc.engine.ray_engine import RayEngine

    if options.workers is not None and options.workers < 1:
        raise SettingsError(f"--workers is {options.workers}; give a number from 1")
    return RayEngine(options.ray_address, options.workers)


def shown_as(options: argparse.Namespace) -> Any:
    """Shows progress while it is entered, in the way that was asked for."""
    from s2osc.progress import shown, written

    return written(sys.stderr) if options.progress == "json" else shown()


def add_text_column(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--text-column", metavar="NAME", help="the column that has texts (default: text)"
    )


def trusted_of(options: argparse.Namespace) -> "Trusted":
    from s2osc.app.extract import Trusted

    return Trusted(options.backbone, options.embedding, options.text_column)


def add_trusted(parser: argparse.ArgumentParser) -> None:
    """Options for what a saved model needs, and no file may choose."""
    parser.add_argument(
        "--embedding",
        metavar="NAME",
        help="the model that made vectors of texts, where that is neither all-minilm-l6-v2 nor "
        "wordllama: no other is loaded without its name",
    )
    add_text_column(parser)
    parser.add_argument(
        "--backbone",
        metavar="NAME",
        help="the pretrained network that the model was made with, where that is not "
        "efficientnet-lite0: no other is loaded without its name",
    )


def add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE",
        help="write where the time goes, function by function, to a .prof or .txt file",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def add_representation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--side", type=int, help="bring images to squares of this many pixels (default: chosen)"
    )
    parser.add_argument(
        "--backbone",
        default="auto",
        metavar="auto|scratch|NAME",
        help="the pretrained network that images go through first: efficientnet-lite0 or the name "
        "of one in timm or on the Hugging Face hub; scratch for none. auto (the default) takes "
        "efficientnet-lite0 for images of more than 40 pixels a side. Features are kept in "
        "$S2OSC_CACHE or ~/.cache/s2osc/features",
    )


def add_minutes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="with --preset auto: train the backbone on photos (the preset tuned) where that takes "
        "at most so long on this machine, which is measured first (default: heads alone)",
    )


def add_tables(parser: argparse.ArgumentParser) -> None:
    """Options for texts and tables."""
    add_text_column(parser)
    parser.add_argument(
        "--embedding",
        default="auto",
        metavar="NAME",
        help="the model that makes vectors of texts: all-minilm-l6-v2 (the default), wordllama, "
        "which is quicker and blind to the order of words, or the name or folder of one of "
        "sentence-transformers",
    )
    parser.add_argument(
        "--keep-column",
        action="append",
        default=[],
        metavar="NAME",
        dest="keep_columns",
        help="use a column of a table that looks like an identifier; may be given several times",
    )


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", type=Path, help="where data sets lie (default: $S2OSC_DATA or ~/.cache/s2osc)"
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-megapixels", type=float, default=50, help="refuse larger images (default: 50)"
    )


def add_force(parser: argparse.ArgumentParser, what: str = "results that are there") -> None:
    parser.add_argument("--force", action="store_true", help=f"replace {what}")


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default="auto",
        metavar="auto|fast|quick|heads|tuned|large|plain|paper",
        help="where hyper-parameters start from. auto (the default): heads for vectors and for "
        "photos through a backbone, large for images on a GPU, elsewhere quick for images of which "
        "at most 3,000 are labelled, and fast. tuned trains upper stages of the backbone on "
        "photos, in minutes. plain and paper have no seeds: the paper's method with compact "
        "networks, and with its own",
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same answer (default: 0)")
    add_device(parser)
    add_decision(parser)
    parser.add_argument(
        "--hold-back",
        metavar="SHARE",
        help="share of the labelled items that is held back and hidden in the pool, to measure "
        "the answer by (default: 0.15; none with the presets plain and paper)",
    )
    parser.add_argument("--seeds", action=_OldName, dest="hold_back", help=argparse.SUPPRESS)
    parser.add_argument(
        "--filter",
        metavar="seeds|paper",
        help="how the most distinct items are found: by every sign, weighed by the seeds, or by "
        "the paper's formula (default: the preset's)",
    )
    parser.add_argument(
        "--k",
        metavar="auto|N",
        help="items taken as distinct unknowns (default: auto, as many as the seeds find pure, or "
        "300 without seeds)",
    )
    parser.add_argument("--unknown", choices=("one", "many"), help="one or several unknown classes")
    parser.add_argument(
        "--groups", metavar="auto|N", help="number of groups of unknown items (default: auto)"
    )
    parser.add_argument(
        "--flip",
        choices=("auto", "true", "false"),
        help="whether a mirrored image means the same (default: auto, yes for colour images)",
    )
    parser.add_argument(
        "--fit-on",
        type=int,
        default=FIT_ON,
        metavar="N",
        help="fit a larger pool on a sample of so many of its items, with more of the strange "
        "ones, and answer for all (default: 50000)",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="a preset and hyper-parameters from a file, such as `s2osc tune` writes; what else is "
        "given counts more",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other hyper-parameter, such as student.tau=0.9; `s2osc settings` lists them",
    )


class _OldName(argparse.Action):
    """Takes an option by a name it had before, and says so."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        warnings.warn(
            f"{option} is now called --hold-back; the next version knows only that",
            S2OSCWarning,
            stacklevel=2,
        )
        setattr(namespace, self.dest, values)


def add_decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--false-alarm",
        metavar="RATE",
        help="at most this share of known items may be called unknown (default: 0.05)",
    )
    parser.add_argument(
        "--false-alarm-of",
        action="append",
        metavar="CLASS=RATE",
        help="another limit for the known items that are given one class, such as cat=0.01; can be "
        "given several times; none takes back such limits",
    )
    parser.add_argument(
        "--guarantee",
        metavar="average|pool",
        help="that limit holds on average over pools, or with 95%% confidence in this pool "
        "(default: average)",
    )
    parser.add_argument(
        "--aim",
        metavar="balance|recall",
        help="within that limit, weigh alarms against items missed, or find as many unknown items "
        "as it allows (default: balance)",
    )
    parser.add_argument(
        "--unsure", action="store_true", default=None, help="call close calls unsure"
    )


def decision_of(options: argparse.Namespace) -> NamedSettings:
    """The settings of the decision that were given."""
    given = {name: getattr(options, name) for name in ("false_alarm", "guarantee", "aim", "unsure")}
    given["false_alarm_of"] = limits_of_classes(options.false_alarm_of)
    return {name: value for name, value in given.items() if value is not None}


def limits_of_classes(texts: list[str] | None) -> dict[str, str] | None:
    """Limits by the names of classes; empty: those given before are taken back.

    >>> limits_of_classes(["cat=0.01", "a=b=0.02"]), limits_of_classes(["none"])
    ({'cat': '0.01', 'a=b': '0.02'}, {})
    """
    if texts is None or texts == ["none"]:
        return None if texts is None else {}
    limits = {}
    for text in texts:
        name, equals, rate = text.rpartition("=")
        if not equals:
            raise SettingsError(
                f"--false-alarm-of is {text!r}; give CLASS=RATE, such as cat=0.01, or none"
            )
        limits[name.strip()] = rate.strip()
    return limits


def request_of(options: argparse.Namespace) -> "Request":
    from s2osc.app.request import Request

    preset, saved = options.preset, NamedSettings()
    if options.settings is not None:
        from s2osc.app.settings_file import read_settings

        of_file, saved = read_settings(options.settings)
        preset = of_file if preset == "auto" else preset
    changes = {
        "seeds.share": options.hold_back,
        "filtering.by": options.filter,
        "filtering.k": options.k,
        "student.unknown": options.unknown,
        "clusters.n_groups": options.groups,
        "augmentation.flip": options.flip,
    }
    changes = saved | {name: value for name, value in changes.items() if value is not None}
    changes |= {f"decision.{name}": value for name, value in decision_of(options).items()}
    for setting in options.set:
        name, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(f"--set is {setting!r}; give NAME=VALUE, such as student.tau=0.9")
        changes[name.strip()] = value.strip()
    # Of commands that read files.
    reading = (
        *("side", "backbone", "embedding", "text_column", "keep_columns", "max_megapixels"),
        "minutes",
    )
    return Request(
        preset=preset,
        changes=changes,
        seed=options.seed,
        device=options.device,
        fit_on=options.fit_on,
        **{name: getattr(options, name) for name in reading if hasattr(options, name)},
    )
