"""What a person's labels of random items say about a pool: exact intervals, no assumption.

The pool is put into one random order, drawn from the seed of the run, and a person is always asked
about the next items of it. So the items asked so far are a simple random sample of the pool,
whatever the scores, the labelled items and the sources are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from s2osc.pipeline.audit.record import CheckedAudit
from s2osc.pipeline.audit.statistics import (
    CONFIDENCE,
    Estimate,
    chance_of_at_most,
    drawn_interval,
    first_that_holds,
)
from s2osc.seeding import rng
from s2osc.text import match_ids
from s2osc.types import UNKNOWN, UNSURE

NO_LABEL = UNSURE
"""Of an item without a label, among the labels of a check."""
UNDECIDED = ("", "unsure", "-2")
"""What a person writes who cannot tell."""


@dataclass(frozen=True)
class Check:
    """Items of a pool that a person was asked about, in the random order of the pool."""

    rows: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()  # as they were written; "" where there is none

    @property
    def n_labels(self) -> int:
        return sum(bool(label) for label in self.labels)

    @property
    def open_rows(self) -> tuple[int, ...]:
        """The items without a label."""
        return tuple(row for row, label in zip(self.rows, self.labels, strict=True) if not label)

    def asked(self, n: int, *, n_pool: int, seed: int) -> Self:
        """The same with the next ``n`` items of the pool, or as many as are left.

        >>> Check().asked(2, n_pool=5, seed=0).asked(2, n_pool=5, seed=0).rows
        (1, 3, 0, 4)
        """
        before = set(self.rows)
        others = [row for row in check_order(n_pool, seed).tolist() if row not in before][:n]
        return replace(self, rows=(*self.rows, *others), labels=(*self.labels, *[""] * len(others)))

    def labelled(self, given: Mapping[int, str]) -> Self:
        """The same with the labels of some of its rows."""
        labels = tuple(
            given.get(row, label) for row, label in zip(self.rows, self.labels, strict=True)
        )
        return replace(self, labels=labels)

    def measure(self, answers: np.ndarray, classes: Sequence[str]) -> CheckedAudit | None:
        """What the labels say about the answers (n,) for the pool; None without a label.

        Items after the last label are not skipped: a person has not come to them yet.
        """
        n = max((place for place, label in enumerate(self.labels, start=1) if label), default=0)
        meant = meant_classes(self.labels, classes)
        truth = np.array([meant[label] for label in self.labels[:n]], int)
        return measure_labels(truth, self.rows[:n], answers)


def check_order(n_pool: int, seed: int) -> np.ndarray:
    """The row numbers of a pool in the order in which a person is asked about them."""
    return rng(seed, "check").permutation(n_pool)


def meant_classes(labels: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """The known class that each label means, ``UNKNOWN`` where it is another name.

    Capitals do not matter, nor that a table of numbers has turned the class 7 into 7.0.

    >>> meant_classes(["cat", "Dog", "owl", "unknown", ""], ["cat", "dog"])
    {'cat': 0, 'Dog': 1, 'owl': -1, 'unknown': -1, '': -2}
    >>> meant_classes(["7.0", "8"], ["07", "8"])
    {'7.0': 0, '8': 1}
    """
    place = {name: c for c, name in enumerate(classes)}
    others = [label for label in labels if label not in place]
    plain = {name.casefold(): name for name in classes}
    name_of = {label: plain.get(label.casefold(), label) for label in labels}
    name_of |= {label: label for label in labels if label in place}
    name_of |= match_ids(others, classes)
    no_label = {label for label in others if label.casefold() in UNDECIDED}
    return {
        label: place.get(name, NO_LABEL if label in no_label else UNKNOWN)
        for label, name in name_of.items()
    }


def measure_labels(
    truth: np.ndarray, rows: Sequence[int], answers: np.ndarray
) -> CheckedAudit | None:
    """What the classes ``truth`` of the items ``rows`` say about ``answers`` for the whole pool.

    An item without a label may be of any class, and be left out for just that reason. It counts
    both ways: against the low end and for the high end of each interval. Items whose answer is
    unsure are judged as neither right nor wrong.
    """
    has_label, answered = truth != NO_LABEL, answers[list(rows)]
    if not has_label.any():
        return None
    is_decided, is_called = answered != UNSURE, answered == UNKNOWN
    skipped = ~has_label & is_decided
    is_known, is_unknown = has_label & (truth >= 0), has_label & (truth == UNKNOWN)
    judged_known, judged_unknown = is_known & is_decided, is_unknown & is_decided
    n_pool, n_decided = len(answers), int((answers != UNSURE).sum())
    # No more of the pool can be known than what is not unknown for sure, and the other way round.
    n_known, n_unknown = n_decided - judged_unknown.sum(), n_decided - judged_known.sum()
    right = (truth == answered) & is_decided
    share = _rate(is_unknown, has_label, ~has_label, ~has_label, n_pool)
    assert share is not None, "an item has a label"
    return CheckedAudit(
        n_items=int(has_label.sum()),
        n_skipped=int((~has_label).sum()),
        n_unknown=int(is_unknown.sum()),
        n_known=int(judged_known.sum()),
        n_alarms=int((judged_known & is_called).sum()),
        n_right=int((has_label & right).sum()),
        unknown_share=share,
        accuracy=_rate(right, has_label & is_decided, skipped, skipped, n_decided),
        false_alarm=_rate(
            is_called, judged_known, skipped & is_called, skipped & ~is_called, n_known
        ),
        known_accuracy=_rate(right, judged_known, skipped & ~is_called, skipped, n_known),
        unknown_recall=_rate(
            is_called, judged_unknown, skipped & is_called, skipped & ~is_called, n_unknown
        ),
    )


def _rate(
    is_hit: np.ndarray,
    counts: np.ndarray,
    may_hit: np.ndarray,
    may_miss: np.ndarray,
    n_pool: int,
) -> Estimate | None:
    """The rate of hits among items that count, in a pool that has at most ``n_pool`` of them.

    Skipped items that may have been hits raise the high end, those that may have been misses lower
    the low end. None where no item counts.
    """
    hits, n = int((is_hit & counts).sum()), int(counts.sum())
    low = drawn_interval(hits, n + int(may_miss.sum()), int(n_pool))
    more = int(may_hit.sum())
    high = drawn_interval(hits + more, n + more, int(n_pool))
    if not n or low is None or high is None:
        return None
    return Estimate(hits / n, low.low, high.high)


@dataclass(frozen=True)
class Outlook:
    """What so many labels of random items will tell about a pool."""

    n_labels: int
    unknown_share: Estimate  # if as large a share is unknown as is called unknown
    accuracy: Estimate  # if 95 % of the answers are right
    visible_share: float  # a class of this share of the pool is among the items, with 95 %


def outlook(n_labels: int, *, n_pool: int, called_unknown: float) -> Outlook:
    """What can be said before anybody has labelled anything.

    >>> found = outlook(30, n_pool=10_000, called_unknown=0.4)
    >>> [round(end, 2) for end in found.unknown_share], round(found.visible_share, 3)
    ([0.4, 0.23, 0.59], 0.095)
    """

    def interval(share: float) -> Estimate:
        found = drawn_interval(round(share * n_labels), n_labels, n_pool)
        assert found is not None, "there is at least one label"
        return found

    def is_drawn(n_items: int) -> bool:
        none = chance_of_at_most(0, n_pool, marked=n_items, drawn=n_labels)
        return none <= 1 - CONFIDENCE

    return Outlook(
        n_labels=n_labels,
        unknown_share=interval(called_unknown),
        accuracy=interval(0.95),
        visible_share=first_that_holds(is_drawn, n_pool) / n_pool,
    )
