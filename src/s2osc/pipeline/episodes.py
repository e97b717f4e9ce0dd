"""Tasks made of known classes alone: some are hidden, as if they were unknown. Are they found?

Whoever wants to know how well something works on *these* data, or has a threshold to choose, tries
it on episodes: what is right is known there. What a step learns from labels, it must learn in an
episode from the classes that were not hidden.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.settings import require_least, require_range

FEWEST = 8
"""Items of a class, below which it is not hidden: too few to be recognised as a class."""


@dataclass(frozen=True)
class EpisodeSettings:
    """How many episodes there are, and what is in one."""

    n_episodes: int = 24
    most_items: int = 300  # of hidden classes, in all
    mistaken: float = 0.05  # of them, that many of other classes among them; half of those at most
    smallest: float = 0.3  # of a class, drawn between this share and all: classes are not alike
    most_hidden: float = 1.0  # of the classes

    def __post_init__(self) -> None:
        require_least("the number of episodes", self.n_episodes, 1)
        require_least("the items of an episode", self.most_items, FEWEST)
        require_range("the share of mistaken items", self.mistaken, 0, 1)
        require_range("the smallest share of a class", self.smallest, 0, 1)
        require_range("the share of hidden classes", self.most_hidden, 0, 1)


@dataclass(frozen=True, eq=False)
class Episode:
    """Rows of labelled items: those of hidden classes with a few mistaken ones, and the others."""

    hidden: np.ndarray  # (n,) rows to work on, in random order
    is_mistaken: np.ndarray  # (n,) whether the item is of a class that is not hidden
    others: np.ndarray  # rows whose labels are known in the episode
    n_classes: int  # that are hidden


def draw_episodes(
    labels: np.ndarray, settings: EpisodeSettings, random: np.random.Generator
) -> list[Episode]:
    """Episodes that hide one class, two classes, and so on, n classes 1/n as often as one.

    Nobody knows how many are unknown, and this supposes no scale: 2 or 3 are about as likely as 5
    to 10. Of four classes or more, one is never hidden; of fewer, all are at times. Without two
    classes that are large enough there is no episode.

    >>> few = EpisodeSettings(n_episodes=6, mistaken=0.0)
    >>> drawn = draw_episodes(np.repeat([0, 1, 2, 3], 20), few, np.random.default_rng(0))
    >>> sorted(episode.n_classes for episode in drawn)
    [1, 1, 1, 2, 2, 3]
    """
    rows_of = {c: np.flatnonzero(labels == c) for c in np.unique(labels)}
    classes = [c for c, rows in rows_of.items() if len(rows) >= FEWEST]
    if len(classes) < 2:
        return []
    most = len(classes) - 1 if len(classes) > 3 else len(classes)
    most = max(1, min(most, int(settings.most_hidden * len(classes))))
    episodes = []
    for number in random.permutation(_numbers_hidden(settings.n_episodes, most)):
        hidden = random.permutation(classes)[:number]
        parts = []
        for c in hidden:
            share = random.uniform(settings.smallest, 1)
            n = max(FEWEST, round(share * len(rows_of[c])))
            parts.append(random.permutation(rows_of[c])[:n])
        rows = random.permutation(np.concatenate(parts))[: settings.most_items]
        others = random.permutation(np.flatnonzero(~np.isin(labels, hidden)))
        n_mistaken = min(round(settings.mistaken * len(rows)), len(others) // 2)
        mixed = np.concatenate([rows, others[:n_mistaken]])
        order = random.permutation(len(mixed))
        episodes.append(
            Episode(
                hidden=mixed[order],
                is_mistaken=order >= len(rows),
                others=others[n_mistaken:],
                n_classes=len(hidden),
            )
        )
    return episodes


def _numbers_hidden(n_episodes: int, most: int) -> np.ndarray:
    """(n_episodes,) how many classes each episode hides, from 1 to ``most``."""
    often = np.cumsum(1 / np.arange(1, most + 1))
    return np.asarray(
        1 + np.searchsorted(often / often[-1], (np.arange(n_episodes) + 0.5) / n_episodes)
    )
