"""How good an answer is: plain functions of the truth and the predictions.

``truth`` and ``labels`` hold a known class 0 .. C-1 or ``UNKNOWN``; all unknown items are one class
unless a function says otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from s2osc.lazy import lazily
from s2osc.seeding import derive
from s2osc.types import UNKNOWN, Answer, Predictions

optimize = lazily("scipy.optimize")
cluster = lazily("sklearn.cluster")
decomposition = lazily("sklearn.decomposition")
sklearn_metrics = lazily("sklearn.metrics")

N_AXES = 50
"""Wider features are clustered in as many principal components."""
NO_CLASS = -1
"""What a cluster is called that no class of the data set was left for."""


class ClassScores(NamedTuple):
    """Precision, recall and F1 of each class that the truth or an answer has."""

    n_items: np.ndarray  # (C,) in the truth
    precision: np.ndarray  # (C,) 0 where nothing was called so
    recall: np.ndarray  # (C,)
    f1: np.ndarray  # (C,)


def class_scores(truth: np.ndarray, labels: np.ndarray) -> ClassScores:
    """Those of scikit-learn, which takes longer to check small arrays than to count them."""
    classes, places = np.unique(np.append(truth, labels), return_inverse=True)
    theirs, called = np.split(places, [len(truth)])
    n_items, n_called, n_right = (
        np.bincount(each, minlength=len(classes))
        for each in (theirs, called, theirs[theirs == called])
    )

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.divide(part, whole, out=np.zeros(len(classes)), where=whole > 0)

    return ClassScores(
        n_items=n_items,
        precision=share(n_right, n_called),
        recall=share(n_right, n_items),
        f1=share(2 * n_right, n_items + n_called),
    )


def weighted_scores(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 of each class weighted by its share of the truth."""
    found = class_scores(truth, labels)
    return {
        "accuracy": float(np.mean(truth == labels)),
        "precision": float(np.average(found.precision, weights=found.n_items)),
        "recall": float(np.average(found.recall, weights=found.n_items)),
        "f1": float(np.average(found.f1, weights=found.n_items)),
    }


def macro_f1(truth: np.ndarray, labels: np.ndarray) -> float:
    """F1 of each class that the truth has, a rare one counting as much as a frequent one.

    >>> round(macro_f1(np.array([0, 0, 0, -1]), np.array([0, 0, -1, -1])), 4)
    0.7333
    """
    found = class_scores(truth, labels)
    return float(found.f1[found.n_items > 0].mean())


def f_out(truth: np.ndarray, labels: np.ndarray) -> float:
    """F1 of unknown against known: 2 TP / (2 TP + FP + FN).

    >>> round(f_out(np.array([0, -1, -1, 1]), np.array([-1, -1, 0, 1])), 2)
    0.5
    """
    is_unknown, called = truth == UNKNOWN, labels == UNKNOWN
    return float(2 * (is_unknown & called).sum() / max(is_unknown.sum() + called.sum(), 1))


def f_out_of_all_unknown(truth: np.ndarray) -> float:
    """What calling everything unknown would give, 2 pi / (1 + pi): the line to be above.

    >>> round(f_out_of_all_unknown(np.array([-1] * 375 + [0] * 625)), 4)
    0.5455
    """
    share = float(np.mean(truth == UNKNOWN))
    return 2 * share / (1 + share)


def ranks(values: np.ndarray) -> np.ndarray:
    """(n,) the rank of each value from 1; equal ones share their mean rank.

    >>> ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def auroc(truth: np.ndarray, unknown_score: np.ndarray) -> float:
    """P(score of an unknown item > score of a known one) + P(equal) / 2.

    >>> auroc(np.array([0, 1, -1, -1]), np.array([0.1, 0.4, 0.4, 0.9]))
    0.875
    """
    is_unknown = truth == UNKNOWN
    n_unknown, n_known = int(is_unknown.sum()), int((~is_unknown).sum())
    # Among all items an item has (rank - 1) scores below it and half of its ties; so it has among
    # those that are unknown, and what is left is how many known items it stands above.
    n_above = ranks(unknown_score)[is_unknown].sum() - n_unknown * (n_unknown + 1) / 2
    return float(n_above / (n_unknown * n_known))


def oscr(truth: np.ndarray, nearest: np.ndarray, unknown_score: np.ndarray) -> float:
    """Area under correctly classified known items against accepted unknown ones.

    The share of pairs of a known and an unknown item in which the nearest known class of the
    first is its own and it has the lower score; a tie is half. No threshold enters.

    >>> truth = np.array([0, 1, 0, -1, -1])
    >>> oscr(truth, np.array([0, 0, 0, 0, 0]), np.array([0.1, 0.2, 0.6, 0.15, 0.7]))
    0.5
    """
    is_known = truth != UNKNOWN
    n_known, n_unknown = int(is_known.sum()), int((~is_known).sum())
    # Among all items an item has (rank - 1) scores below it and half of its ties; without those
    # that are known, what is left is how many unknown items it stands above.
    below = ranks(unknown_score)[is_known] - ranks(unknown_score[is_known])
    right = (nearest == truth)[is_known]
    return float((n_unknown - below[right]).sum() / (n_known * n_unknown))


def fpr95(truth: np.ndarray, unknown_score: np.ndarray) -> float:
    """Share of unknown items accepted where 95 % of the known ones are; lower is better.

    >>> fpr95(np.array([0] * 20 + [-1] * 2), np.array([*range(20), 18.0, 18.5]))
    0.5
    """
    is_known = truth != UNKNOWN
    known = np.sort(unknown_score[is_known])
    n_accepted = -(-95 * len(known) // 100)
    return float(np.mean(unknown_score[~is_known] <= known[n_accepted - 1]))


def matched_accuracy(truth_classes: np.ndarray, groups: np.ndarray) -> float:
    """Share of items whose group is theirs, under the best one-to-one match of groups to classes.

    A group of -1 (an unknown item that was called known) is never right.

    >>> matched_accuracy(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 2]))
    0.75
    """
    if len(groups) == 0 or groups.max() < 0:
        return 0.0
    _, classes = np.unique(truth_classes, return_inverse=True)
    found = groups >= 0
    table = np.zeros((groups.max() + 1, classes.max() + 1), int)
    np.add.at(table, (groups[found], classes[found]), 1)
    return float(table[optimize.linear_sum_assignment(table, maximize=True)].sum() / len(groups))


def evaluate(truth: np.ndarray, predictions: Predictions) -> dict[str, float]:
    """Every figure of the main table; those that need items the truth has not are left out."""
    labels, scores = predictions.labels, predictions.unknown_score
    is_known = truth != UNKNOWN
    figures = weighted_scores(truth, labels) | {"macro_f1": macro_f1(truth, labels)}
    if is_known.any():
        figures["known_accuracy"] = float(np.mean((labels == truth)[is_known]))
    figures |= _detection(truth, labels == UNKNOWN)
    if is_known.any() and not is_known.all():
        figures["auroc"] = auroc(truth, scores)
        if predictions.nearest is not None:
            figures["oscr"] = oscr(truth, predictions.nearest, scores)
        figures["fpr95"] = fpr95(truth, scores)
    return _rounded(figures)


def evaluate_by_name(
    answer: Answer, classes: Sequence[str], truth_names: list[str] | None
) -> dict[str, float]:
    """Metrics over the items that came with truth; none without.

    Items left unsure are judged as neither right nor wrong: ``decided`` is the share of the rest.
    """
    has_truth = np.array([bool(name) for name in truth_names or []])
    if not has_truth.any():
        return {}
    is_judged = has_truth & ~answer.is_unsure
    decided = {"decided": round(float(is_judged.sum() / has_truth.sum()), 5)}
    if not is_judged.any():
        return decided
    names = np.array(truth_names)[is_judged]
    label_of = {name: label for label, name in enumerate(classes)}
    truth = np.array([label_of.get(name, UNKNOWN) for name in names])
    fields = {name: values for name, values in vars(answer).items() if values is not None}
    part = replace(answer, **{name: values[is_judged] for name, values in fields.items()})
    figures = evaluate(truth, part)
    of_unknown = truth == UNKNOWN
    if of_unknown.any():
        matched = matched_accuracy(names[of_unknown], part.groups[of_unknown])
        figures["group_accuracy"] = round(matched, 5)
    return figures | decided if answer.is_unsure.any() else figures


def _detection(truth: np.ndarray, is_unknown: np.ndarray) -> dict[str, float]:
    """Figures of "unknown or not" alone."""
    of_unknown = truth == UNKNOWN
    figures = {}
    if not of_unknown.all():
        figures["false_alarms"] = float(np.mean(is_unknown[~of_unknown]))
    if of_unknown.any():
        figures["f_out"] = f_out(truth, np.where(is_unknown, UNKNOWN, 0))
        figures["f_out_all_unknown"] = f_out_of_all_unknown(truth)
        figures["unknown_recall"] = float(np.mean(is_unknown[of_unknown]))
    return figures


def evaluate_groups(
    truth_classes: np.ndarray, is_truly_unknown: np.ndarray, groups: np.ndarray
) -> dict[str, float]:
    """How many groups there are, and how well they are the unknown classes.

    Over all truly unknown items: one that was missed (group -1) is wrong. It is in no group of the
    accuracy, and NMI and ARI are those of the items found times the share found; ``nmi_found`` is
    that of the items found alone. They are 0 where these are of one class. They say something where
    there are two unknown classes at least, and are absent elsewhere.

    >>> evaluate_groups(np.array([5, 5, 6, 6]), np.ones(4, bool), np.array([0, 0, 1, -1]))
    {'n_groups': 2, 'group_accuracy': 0.75, 'nmi_found': 1.0, 'nmi': 0.75, 'ari': 0.75}
    """
    figures: dict[str, float] = {"n_groups": int(groups.max(initial=-1)) + 1}
    if not is_truly_unknown.any():
        return figures
    classes, theirs = truth_classes[is_truly_unknown], groups[is_truly_unknown]
    figures["group_accuracy"] = matched_accuracy(classes, theirs)
    if len(np.unique(classes)) > 1:
        found = theirs >= 0
        share, of_found = float(np.mean(found)), (classes[found], theirs[found])
        nmi = ari = 0.0
        if len(np.unique(classes[found])) > 1:
            nmi = float(sklearn_metrics.normalized_mutual_info_score(*of_found))
            ari = float(sklearn_metrics.adjusted_rand_score(*of_found))
        figures |= {"nmi_found": nmi, "nmi": share * nmi, "ari": share * ari}
    return _rounded(figures)


def evaluate_classes(
    truth: np.ndarray, truth_classes: np.ndarray, labels: np.ndarray, groups: np.ndarray
) -> dict[str, float]:
    """Weighted scores where each unknown class counts for itself.

    An item called unknown is given the unknown class its group is matched to, one to one and so
    that most are right, which uses the truth; of groups beyond the number of classes none is.

    >>> truth, classes = np.array([0, 0, -1, -1, -1]), np.array([7, 7, 3, 3, 4])
    >>> labels, groups = np.array([0, -1, -1, -1, -1]), np.array([-1, 1, 0, 1, 1])
    >>> evaluate_classes(truth, classes, labels, groups)["class_accuracy"]
    0.6
    """
    is_unknown, called = truth == UNKNOWN, labels == UNKNOWN
    unknown, places = np.unique(truth_classes[is_unknown], return_inverse=True)
    first = max(truth.max(initial=0), labels.max(initial=0)) + 1  # unknown classes follow the known
    classes = truth.copy()
    classes[is_unknown] = first + places
    matched = labels.copy()
    matched[called] = _match(groups[called], classes[called], first + np.arange(len(unknown)))
    figures = weighted_scores(classes, matched)
    return _rounded({f"class_{name}": value for name, value in figures.items()})


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 5) for name, value in figures.items()}


# Paper mode


def paper_mode(
    truth: np.ndarray,
    truth_classes: np.ndarray,
    is_unknown: np.ndarray,
    features: np.ndarray,
    n_known: int,
    n_unknown: int,
    seed: int,
) -> np.ndarray:
    """Labels as the paper gave them for methods that only detect: a class of the data set each.

    What was called known is clustered into ``n_known`` clusters, what was called unknown into
    ``n_unknown``; clusters are matched one to one to the known classes and to the unknown ones so
    that most items are right. This uses the truth, and throws away what a method says of classes.
    A cluster for which no class is left is ``NO_CLASS``.
    """
    axes = _narrow(features, seed)
    labels = np.full(len(truth), NO_CLASS)
    for called, of_part, n_clusters in (
        (~is_unknown, truth != UNKNOWN, n_known),
        (is_unknown, truth == UNKNOWN, n_unknown),
    ):
        clusters = kmeans_groups(axes[called], n_clusters, seed)
        allowed = np.unique(truth_classes[of_part])
        labels[called] = _match(clusters, truth_classes[called], allowed)
    return labels


def _narrow(features: np.ndarray, seed: int) -> np.ndarray:
    """Principal components where there are more features than ``N_AXES``."""
    n_axes = min(N_AXES, len(features))
    if n_axes == 0 or features.shape[1] <= N_AXES:
        return features
    axes = decomposition.PCA(
        n_axes, svd_solver="randomized", random_state=derive(seed, "k-means, axes")
    )
    return np.asarray(axes.fit_transform(features))


def kmeans_groups(features: np.ndarray, n_groups: int, seed: int) -> np.ndarray:
    """(n,) groups by k-means: fewer where there are fewer different items; -1: in none.

    >>> kmeans_groups(np.array([[1.0], [1.0]]), 3, seed=0)
    array([0, 0], dtype=int32)
    """
    rows = _narrow(features, seed)
    n_groups = min(n_groups, len(np.unique(rows, axis=0)))
    if n_groups == 0:
        return np.full(len(rows), -1)
    means = cluster.KMeans(n_groups, n_init=10, random_state=derive(seed, "k-means"))
    return np.asarray(means.fit_predict(rows))


def _match(clusters: np.ndarray, classes: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The class of each item's cluster, under the best one-to-one match to the classes allowed."""
    ids = range(clusters.max(initial=-1) + 1)
    table = np.array([[np.sum(classes[clusters == n] == c) for c in allowed] for n in ids])
    matched = np.full(len(table) + 1, NO_CLASS)  # the last is that of items in no cluster, -1
    if table.size:
        rows, columns = optimize.linear_sum_assignment(table, maximize=True)
        matched[rows] = allowed[columns]
    return matched[clusters]


def evaluate_paper_mode(
    truth: np.ndarray,
    truth_classes: np.ndarray,
    predictions: Predictions,
    features: np.ndarray,
    *,
    seed: int,
) -> dict[str, float]:
    """The figures of the main table in paper mode, over the classes that the truth has.

    One unknown class is the C + 1st; several are classes of their own, as the groups are matched to
    them. Ranks do not depend on the mode: AUROC, OSCR and FPR95 are left to fair mode.
    """
    is_known, is_unknown = truth != UNKNOWN, predictions.labels == UNKNOWN
    known, unknown = np.unique(truth_classes[is_known]), np.unique(truth_classes[~is_known])
    labels = paper_mode(
        truth,
        truth_classes,
        is_unknown,
        features,
        n_known=len(known),
        n_unknown=len(unknown),
        seed=seed,
    )
    figures = weighted_scores(truth_classes, labels)
    if len(unknown) > 1:
        figures |= {f"class_{name}": value for name, value in figures.items()}
    figures |= {"macro_f1": macro_f1(truth_classes, labels)} | _detection(truth, is_unknown)
    if is_known.any():
        figures["known_accuracy"] = float(np.mean((labels == truth_classes)[is_known]))
    groups = np.where(is_unknown & (labels != NO_CLASS), np.searchsorted(unknown, labels), -1)
    return _rounded(figures) | evaluate_groups(truth_classes, ~is_known, groups)


# Streams. ``accuracies`` has a row per stage: the accuracy on the classes of each arrival so far


def forgetting(accuracies: Sequence[Sequence[float]], joint_accuracy: float) -> float:
    """(A* - mean_k A_k) / A*, the supplement's; A* is the accuracy of one model of all data.

    A_k is the mean of acc_{k,j} over arrivals j.

    It counts what was never learnt with what was forgotten, and is negative for a learner that is
    better than A*.

    >>> round(forgetting([[0.9], [0.8, 0.9], [0.7, 0.8, 0.9]], 0.95), 4)
    0.1053
    """
    mean = float(np.mean([np.mean(row) for row in accuracies]))
    return (joint_accuracy - mean) / joint_accuracy


def chaudhry_forgetting(accuracies: Sequence[Sequence[float]]) -> float:
    """What the last stage has lost against the best one before, mean over earlier arrivals.

    F_k = mean_{j<k} (max_{l<k} acc_{l,j} - acc_{k,j}), from -1 to 1.

    >>> round(chaudhry_forgetting([[0.9], [0.8, 0.9], [0.7, 0.8, 0.9]]), 4)
    0.15
    """
    *before, last = accuracies
    lost = [max(row[j] for row in before if len(row) > j) - last[j] for j in range(len(before[-1]))]
    return float(np.mean(lost))


# Over partitions


@dataclass(frozen=True)
class Interval:
    """A mean over n partitions; of one alone, the error is not known."""

    mean: float
    half_width: float | None  # of the 95 % t-interval of the mean
    n: int


def interval_over(values: Sequence[float]) -> Interval:
    """The mean with its 95 % t-interval.

    >>> interval_over([0.6, 0.9, 0.9]).n, round(interval_over([0.6, 0.9, 0.9]).half_width, 4)
    (3, 0.4303)
    """
    n = len(values)
    mean = float(np.mean(values))
    if n == 1:
        return Interval(mean, None, n)
    error = float(np.std(values, ddof=1)) / n**0.5
    return Interval(mean, float(stdtrit(n - 1, 0.975)) * error, n)
