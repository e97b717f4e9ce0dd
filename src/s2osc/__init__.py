"""Open set classification of real pools."""

from s2osc.version import __version__

__all__ = [
    "S2OSC",
    "UNKNOWN",
    "CautionWarning",
    "LabelledFolds",
    "OpenStream",
    "S2OSCWarning",
    "__version__",
]

TYPE_CHECKING = False  # typing itself takes long to import, and Ctrl-C shall be quiet meanwhile
if TYPE_CHECKING:
    from s2osc.errors import CautionWarning, S2OSCWarning
    from s2osc.estimator import S2OSC
    from s2osc.folds import LabelledFolds
    from s2osc.stream.open_stream import OpenStream
    from s2osc.types import UNKNOWN


def __getattr__(name: str) -> object:
    """Import on first use: ``import s2osc`` alone stays quick, torch loads when it is needed."""
    if name == "S2OSC":
        from s2osc.estimator import S2OSC

        return S2OSC
    if name == "LabelledFolds":
        from s2osc.folds import LabelledFolds

        return LabelledFolds
    if name == "OpenStream":
        from s2osc.stream.open_stream import OpenStream

        return OpenStream
    if name in ("S2OSCWarning", "CautionWarning"):
        from s2osc import errors

        return getattr(errors, name)
    if name == "UNKNOWN":
        from s2osc.types import UNKNOWN

        return UNKNOWN
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
