"""What is typical of a group of unknown items, as words to start a name from.

texts     the words it has and others have not, by c-TF-IDF (Grootendorst, 2022)
tables    the columns that set it apart, by Cliff's delta
any       the known class that its items are nearest to, and how they differ from that class
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from s2osc.data.columns import Table, as_numbers
from s2osc.metrics import average_ranks
from s2osc.text import clean_text, rounded_percent
from s2osc.types import Answer

WORD = re.compile(r"\b\w\w+\b")
N_WORDS, N_COLUMNS = 8, 4
BY_CHANCE = 0.001
"""A word is typical where so many texts of the group would have it by chance at most this often;
of some thousand words a few pass all the same, and their score is low."""
MORE_FREQUENT = 2.0
"""Times as many texts of the group as of others have a typical word, and its share of all words
there is as many times as high, since long texts have every word. So it is none of those that all
texts have, in any language, and no list of such words is needed."""
MEDIUM = 0.33
"""Of Cliff's delta, from which on a difference is called medium (Romano et al., 2006)."""
MOST_ROWS = 5_000  # that are compared: medians and shares of more are the same


@dataclass(frozen=True)
class GroupProfile:
    """What is typical of one group."""

    group: int
    items: int
    nearest: str  # known class
    nearest_share: float  # of the items, for which it is the nearest
    typical: tuple[str, ...]  # words, or columns and their values; none for images and vectors
    differs: tuple[str, ...]  # the same against the items that were given the nearest class


def profile_groups(
    answer: Answer, classes: Sequence[str], items: "WordCounts | Table | None"
) -> tuple[GroupProfile, ...]:
    """A profile of each group; ``items`` are words of texts, rows of a table, None for others."""
    assert answer.nearest is not None, "an answer for a pool has nearest classes"
    profiles = []
    for group in range(int(answer.groups.max(initial=-1)) + 1):
        inside = answer.groups == group
        if not inside.any():
            continue
        (nearest, n_nearest), *_ = Counter(answer.nearest[inside].tolist()).most_common(1)
        of_class = answer.labels == nearest
        if isinstance(items, WordCounts):
            typical, differs = (items.typical(inside, others) for others in (~inside, of_class))
        elif isinstance(items, Table):
            typical, differs = (
                typical_columns(items, inside, others) for others in (~inside, of_class)
            )
        else:
            typical = differs = ()
        n = int(inside.sum())
        share = round(n_nearest / n, 4)
        profiles.append(GroupProfile(group, n, classes[nearest], share, typical, differs))
    return tuple(profiles)


# --- texts -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word is in each text, where it is in it at all."""

    text: np.ndarray  # (m,) the number of a text ...
    word: np.ndarray  # (m,) ... and that of a word in it, each pair once
    count: np.ndarray  # (m,) how often
    words: np.ndarray  # (v,) rising

    @classmethod
    def of(cls, texts: Sequence[str] | np.ndarray) -> "WordCounts":
        """The words of texts in small letters."""
        counts = [Counter(WORD.findall(text.lower())) for text in texts]
        words = sorted({word for found in counts for word in found})
        number_of = {word: number for number, word in enumerate(words)}
        return cls(
            text=np.repeat(np.arange(len(counts)), [len(found) for found in counts]),
            word=np.array([number_of[word] for found in counts for word in found], int),
            count=np.array([n for found in counts for n in found.values()], int),
            words=np.array(words, object),
        )

    def typical(self, inside: np.ndarray, others: np.ndarray) -> tuple[str, ...]:
        """The most distinctive words of the texts inside, against others; none without others."""
        if not others.any() or not len(self.words):
            return ()
        parts = [rows[self.text] for rows in (inside, others)]
        v = len(self.words)
        totals = np.stack([np.bincount(self.word[p], self.count[p], v) for p in parts])
        having = [np.bincount(self.word[part], minlength=v) for part in parts]
        shares = having[0] / inside.sum(), having[1] / others.sum()
        rates = totals / np.maximum(totals.sum(1, keepdims=True), 1)
        chance = as_many(having[0], int(inside.sum()), (having[1] + 1) / (others.sum() + 2))
        is_typical = (
            (shares[0] >= MORE_FREQUENT * shares[1])
            & (rates[0] >= MORE_FREQUENT * rates[1])
            & (chance <= BY_CHANCE)
        )
        scores = np.where(is_typical, class_tf_idf(totals)[0], 0)
        best = np.argsort(-scores, kind="stable")[:N_WORDS]
        return tuple(clean_text(str(self.words[word])) for word in best if scores[word] > 0)


def as_many(hits: np.ndarray, n: int, p: np.ndarray) -> np.ndarray:
    """The probability of so many hits or more among n, with probability p each.

    >>> as_many(np.array([0, 1, 2]), 2, np.array([0.5, 0.5, 0.5])).tolist()
    [1.0, 0.75, 0.25]
    """
    return np.asarray(np.where(hits > 0, betainc(np.maximum(hits, 1), n - hits + 1, p), 1.0))


def class_tf_idf(counts: np.ndarray) -> np.ndarray:
    """c-TF-IDF of words, (c, v), from how often each class has each of them, (c, v).

    The share of a word among those of the class, times the logarithm of one plus the mean number of
    words of a class over how often all classes have the word.

    >>> class_tf_idf(np.array([[2, 2], [0, 4]])).round(3).tolist()
    [[0.549, 0.255], [0.0, 0.511]]
    """
    of_class = np.maximum(counts.sum(1, keepdims=True), 1)
    of_word = np.maximum(counts.sum(0), 1)
    return counts / of_class * np.log1p(counts.sum() / len(counts) / of_word)


# --- tables ----------------------------------------------------------------------------------


def typical_columns(table: Table, inside: np.ndarray, others: np.ndarray) -> tuple[str, ...]:
    """The columns whose values set the rows inside most apart from others, in words."""
    mine, theirs = (_some(rows) for rows in (inside, others))
    if not len(theirs):
        return ()
    found = []
    for name, values in table.columns.items():
        compare = _compare_words if values.dtype == object else _compare_numbers
        delta, words = compare(values[mine], values[theirs])
        if abs(delta) >= MEDIUM:
            found.append((-abs(delta), f"{name} {words}"))
    return tuple(words for _, words in sorted(found, key=lambda pair: pair[0])[:N_COLUMNS])


def _some(rows: np.ndarray) -> np.ndarray:
    """Places of rows, not too many, evenly over all of them."""
    places = np.flatnonzero(rows)
    return places[:: -(-len(places) // MOST_ROWS) or 1]


def _compare_numbers(mine: np.ndarray, theirs: np.ndarray) -> tuple[float, str]:
    numbers = [as_numbers(values) for values in (mine, theirs)]
    numbers = [values[np.isfinite(values)] for values in numbers]
    if not all(map(len, numbers)):
        return 0.0, ""
    delta = cliffs_delta(*numbers)
    here, elsewhere = (_middle(values) for values in (mine, theirs))
    return delta, f"{'higher' if delta > 0 else 'lower'}: {here}, elsewhere {elsewhere}"


def _middle(values: np.ndarray) -> str:
    if values.dtype.kind == "M":
        days = np.sort(values[~np.isnat(values)])
        return str(days[len(days) // 2].astype("datetime64[D]"))
    return f"{np.nanmedian(values.astype(np.float64)):.4g}"


def _compare_words(mine: np.ndarray, theirs: np.ndarray) -> tuple[float, str]:
    """Of a word as 0 and 1, Cliff's delta is the difference of the shares that have it."""
    here, elsewhere = Counter(mine.tolist()), Counter(theirs.tolist())
    shares = {word: (here[word] / len(mine), elsewhere[word] / len(theirs)) for word in here}
    word, (a, b) = max(shares.items(), key=lambda item: item[1][0] - item[1][1])
    called = f"is {clean_text(str(word))}" if word else "is missing"
    return a - b, f"{called}: {rounded_percent(a)}, elsewhere {rounded_percent(b)}"


def cliffs_delta(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Of all pairs, the share where mine is larger, less the share where it is smaller.

    >>> cliffs_delta(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.75
    """
    of_mine = average_ranks(np.concatenate([mine, theirs]))[: len(mine)]
    n_above = of_mine.sum() - len(mine) * (len(mine) + 1) / 2  # ties count one half
    return float(2 * n_above / (len(mine) * len(theirs)) - 1)
