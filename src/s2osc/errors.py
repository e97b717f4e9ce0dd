"""What can go wrong, and whose move it is.

    S2OSCError              the command line prints one line and exits with 2
    ├── SettingsError       a hyper-parameter or option cannot be used   (also a ValueError)
    ├── DataError           items, labels or files cannot be used        (also a ValueError)
    ├── ModelError          a saved model cannot be read                 (also a ValueError)
    └── OutputError         results cannot be written

    ReportError             results are saved, but their page could not be made; exits with 1

    S2OSCWarning            the run goes on, with something changed that the user should know
    └── CautionWarning      in Python, a caution of the audit: how far not to trust the answer

A message names the thing, the value found, the value wanted, and how to get there.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class S2OSCError(Exception):
    """Anything a user can mend."""


class SettingsError(S2OSCError, ValueError):
    """A hyper-parameter or option cannot be used."""


class DataError(S2OSCError, ValueError):
    """Items, labels or files cannot be used."""


class ModelError(S2OSCError, ValueError):
    """A saved model is damaged, or newer than this program."""


class OutputError(S2OSCError):
    """Results cannot be written."""


class ReportError(Exception):
    """The page of results could not be made. The answer is saved."""


class S2OSCWarning(UserWarning):
    """The run goes on, with something changed that the user should know."""


class CautionWarning(S2OSCWarning):
    """A caution of the audit: how far not to trust the answer."""


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Gather warnings to the user, who reads them with the results."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", S2OSCWarning)
        yield texts
    messages = (str(w.message) for w in caught if issubclass(w.category, S2OSCWarning))
    texts += dict.fromkeys(messages)  # once each
