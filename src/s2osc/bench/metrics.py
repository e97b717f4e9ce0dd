"""How good an answer is: plain functions of the truth and the predictions.

``truth`` and ``labels`` hold a known class 0 .. C-1 or ``UNKNOWN``; all unknown items are one class
unless a function says otherwise.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import f1_score, precision_recall_fscore_support, roc_auc_score

from s2osc.types import UNKNOWN, Predictions


def weighted_scores(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 of each class weighted by its share of the truth."""
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, labels, average="weighted", zero_division=0
    )
    return {
        "accuracy": float(np.mean(truth == labels)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
    }


def f_out(truth: np.ndarray, labels: np.ndarray) -> float:
    """F1 of unknown against known: 2 TP / (2 TP + FP + FN).

    >>> round(f_out(np.array([0, -1, -1, 1]), np.array([-1, -1, 0, 1])), 2)
    0.5
    """
    return float(f1_score(truth == UNKNOWN, labels == UNKNOWN, zero_division=0))


def f_out_of_all_unknown(truth: np.ndarray) -> float:
    """What calling everything unknown would give, 2 pi / (1 + pi): the line to be above.

    >>> round(f_out_of_all_unknown(np.array([-1] * 375 + [0] * 625)), 4)
    0.5455
    """
    share = float(np.mean(truth == UNKNOWN))
    return 2 * share / (1 + share)


def auroc(truth: np.ndarray, unknown_score: np.ndarray) -> float:
    """P(score of an unknown item > score of a known one) + P(equal) / 2."""
    return float(roc_auc_score(truth == UNKNOWN, unknown_score))


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
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / len(groups))


def evaluate(truth: np.ndarray, predictions: Predictions) -> dict[str, float]:
    """Every figure of the main table; those that need items the truth has not are left out."""
    labels = predictions.labels
    is_known = truth != UNKNOWN
    figures = weighted_scores(truth, labels)
    if is_known.any():
        figures["known_accuracy"] = float(np.mean((labels == truth)[is_known]))
        figures["false_alarms"] = float(np.mean((labels == UNKNOWN)[is_known]))
    if not is_known.all():
        figures["f_out"] = f_out(truth, labels)
        figures["f_out_all_unknown"] = f_out_of_all_unknown(truth)
        if is_known.any():
            figures["auroc"] = auroc(truth, predictions.unknown_score)
    return {name: round(value, 5) for name, value in figures.items()}
