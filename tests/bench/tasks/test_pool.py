"""Judging: every figure is of the items it says, and the truth enters here alone."""

from dataclasses import dataclass

import numpy as np
import pytest

from s2osc.bench.tasks.pool import groups_of, judge_answer, judge_audit, judge_steps
from s2osc.metrics import auroc, evaluate
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.presets import FAST
from s2osc.types import UNKNOWN, Labelled, Predictions, Split
from samples import TINY, make_audit, make_images, open_set, shrink

# Any method


@dataclass(frozen=True, eq=False)
class Scripted:
    """Says of each item, a number, what it was told; only the numbers of some can be asked for."""

    labels: np.ndarray  # of the items 0, 1, ..
    asked: list[list[int]]

    def predict(self, inputs: np.ndarray) -> Predictions:
        labels = self.labels[inputs[:, 0].astype(int)]
        score = (labels == UNKNOWN).astype(float)
        self.asked.append(inputs[:, 0].astype(int).tolist())
        return Predictions(labels, score, np.ones(len(labels)), nearest=np.maximum(labels, 0))

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.astype(np.float32)


def numbered(first: int, after: int) -> np.ndarray:
    return np.arange(first, after, dtype=np.float32)[:, None]


def some_split(*, n_held_out: int = 6) -> Split:
    """Four labelled items; six in the pool, of two unknown classes; six that nobody sees."""
    return Split(
        known=Labelled(numbered(0, 4), np.array([0, 0, 1, 1])),
        pool=numbered(4, 10),
        truth=np.array([0, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]),
        truth_classes=np.array([7, 8, 5, 5, 6, 6]),
        known_classes=(7, 8),
        unknown_classes=(5, 6),
        held_out=numbered(10, 10 + n_held_out),
        held_out_truth=np.array([0, 1, 0, 1, UNKNOWN, UNKNOWN])[:n_held_out],
        held_out_classes=np.array([7, 8, 7, 8, 5, 6])[:n_held_out],
    )


RIGHT_ON_POOL = [0, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]


def judged(on_pool, on_held_out, *, detects_only=False, n_held_out=6):
    split = some_split(n_held_out=n_held_out)
    scripted = Scripted(np.array([0, 0, 1, 1, *on_pool, *on_held_out]), [])
    answers = scripted.predict(split.pool)
    return judge_answer(split, scripted, answers, detects_only=detects_only, seed=0), scripted


def test_a_right_answer_has_perfect_figures_and_an_item_nobody_saw_does_not_enter_them():
    judgement, _ = judged(RIGHT_ON_POOL, [1, 1, 1, 1, 1, 1])
    figures = judgement.metrics
    for name in ("accuracy", "f1", "macro_f1", "f_out", "auroc", "oscr", "group_accuracy", "nmi"):
        assert figures[name] == 1, name
    assert figures["false_alarms"] == 0
    assert figures["n_groups"] == 2


def test_figures_of_items_nobody_saw_are_of_those_items_alone():
    judgement, scripted = judged([UNKNOWN] * 6, [0, 1, 0, 0, UNKNOWN, 0])
    assert scripted.asked == [[4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15]]
    assert judgement.metrics["false_alarms"] == 1
    held_out = judgement.held_out
    assert held_out["accuracy"] == pytest.approx(4 / 6, abs=1e-5)
    assert held_out["known_accuracy"] == 0.75
    assert held_out["unknown_recall"] == 0.5
    assert held_out["false_alarms"] == 0
    assert held_out["group_accuracy"] == 0.5  # the one that was found


def test_without_items_nobody_saw_there_are_no_figures_of_them():
    judgement, scripted = judged(RIGHT_ON_POOL, [], n_held_out=0)
    assert judgement.held_out is None
    assert len(scripted.asked) == 1


def test_paper_mode_is_of_methods_that_only_detect():
    only_detects, _ = judged([1, 0, *RIGHT_ON_POOL[2:]], [0] * 6, detects_only=True)
    names_too, _ = judged([1, 0, *RIGHT_ON_POOL[2:]], [0] * 6)
    assert names_too.paper_mode is None
    assert names_too.metrics == only_detects.metrics
    assert only_detects.metrics["known_accuracy"] == 0
    # Clusters of the items that are called known are matched to classes by the truth.
    assert only_detects.paper_mode["known_accuracy"] == 1


# Groups


def test_what_is_called_unknown_is_clustered_into_as_many_groups_as_there_are_classes():
    scripted = Scripted(np.array([0, UNKNOWN, UNKNOWN, 0, UNKNOWN, UNKNOWN]), [])
    inputs = np.array([0, 1, 2, 3, 4, 5], np.float32)[:, None]
    groups = groups_of(scripted, inputs, scripted.predict(inputs), 2, seed=0)
    assert groups[[0, 3]].tolist() == [-1, -1]
    assert groups[1] == groups[2] != groups[4] == groups[5]
    assert set(groups[groups >= 0].tolist()) == {0, 1}


@pytest.mark.parametrize("n_unknown", [0, 1])
def test_where_one_class_or_none_is_unknown_there_is_one_group(n_unknown):
    scripted = Scripted(np.array([UNKNOWN, 1, UNKNOWN]), [])
    inputs = numbered(0, 3)
    groups = groups_of(scripted, inputs, scripted.predict(inputs), n_unknown, seed=0)
    assert groups.tolist() == [0, -1, 0]


def test_what_calls_nothing_unknown_has_no_groups():
    scripted = Scripted(np.array([0, 1]), [])
    inputs = numbered(0, 2)
    assert groups_of(scripted, inputs, scripted.predict(inputs), 3, seed=0).tolist() == [-1, -1]


def test_a_method_with_groups_of_its_own_is_asked_for_them():
    class Grouping(Scripted):
        def groups(self, inputs):
            return inputs[:, 0].astype(int) - 1

    scripted = Grouping(np.array([0, UNKNOWN, UNKNOWN]), [])
    inputs = numbered(0, 3)
    assert groups_of(scripted, inputs, scripted.predict(inputs), 1, seed=0).tolist() == [-1, 0, 1]


def test_our_answer_has_its_groups_with_it(seeded):
    split, solution = seeded
    groups = groups_of(solution, split.pool, solution.answer, 1, seed=0)
    assert groups is solution.answer.groups


# Our method, step by step


def figures_of(split, solution):
    return judge_answer(split, solution, solution.answer, detects_only=False, seed=0).metrics


def test_the_judgement_holds_the_answer_the_teacher_and_the_filter():
    split = open_set(*make_images())
    solution = TINY.fit(split.known, split.pool, seed=0)
    figures = figures_of(split, solution)
    is_unknown = split.truth < 0
    assert evaluate(split.truth, solution.answer).items() <= figures.items()
    named = solution.model.teacher.outputs(split.pool).logits.argmax(1)
    expected = np.mean((named == split.truth)[~is_unknown])
    assert figures["teacher_known_accuracy"] == pytest.approx(expected, abs=1e-5)
    purity = is_unknown[solution.partition.unknown].mean()
    assert figures["purity_of_d_out"] == pytest.approx(purity, abs=1e-5)
    assert figures["n_groups"] == solution.model.grouping.n_groups
    entropy = solution.model.teacher.outputs(split.pool).entropy
    assert figures["teacher_auroc"] == pytest.approx(auroc(split.truth, entropy), abs=1e-5)
    assert figures["k"] == solution.k == 15
    assert "p_value" not in figures  # nobody was there to tell


def test_the_judgement_of_a_run_with_seeds_holds_their_audit(seeded):
    split, solution = seeded
    figures, account = figures_of(split, solution), solution.trust.audit
    assert figures["k"] == solution.k > 0
    assert figures["nothing_unknown"] == 0
    assert figures["unknown_share_low"] == pytest.approx(account.unknown_share.low, abs=1e-5)
    recall = account.unknown_recall.estimate
    assert figures["unknown_recall_estimate"] == pytest.approx(recall, abs=1e-5)
    assert figures.items() >= evaluate(split.truth, solution.answer).items()


def test_where_nothing_is_found_unknown_there_is_no_purity():
    split = open_set(*make_images(60, n_classes=3))
    solution = shrink(FAST, n_steps=8, k=None).fit(split.known, split.pool, seed=0)
    figures = figures_of(split, solution)
    assert (figures["nothing_unknown"], figures["k"], figures["n_groups"]) == (1, 0, 0)
    assert not {"purity_of_d_out", "teacher_auroc", "group_accuracy", "f_out"} & figures.keys()
    assert "unknown_recall_estimate" not in figures


def audit_of(alarm=(0.0, 0.1), accuracy=(0.8, 1.0), **changes):
    """What the seeds say, with intervals as given."""
    rates = {
        name: Estimate((low + high) / 2, low, high)
        for name, (low, high) in (("false_alarm", alarm), ("known_accuracy", accuracy))
    }
    given = {
        "is_shifted": True,
        "test": UnknownTest(p_value=0.004, level=0.01),
        "unknown_share": Estimate(0.3, 0.2, 0.4),
        "unknown_recall": None,
    }
    return make_audit(**(given | rates | changes))


def covered(rates, **intervals):
    truth = dict(zip(("false_alarms", "known_accuracy"), rates, strict=True))
    figures = judge_audit(truth, audit_of(**intervals))
    return figures["false_alarm_covered"], figures["known_accuracy_covered"]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((0.05, 0.9), (1, 1)),
        ((0.11, 0.9), (0, 1)),
        ((0.05, 0.79), (1, 0)),
        ((0.2, 0.7), (0, 0)),
        ((0.1, 0.8), (1, 1)),  # the ends belong to the interval
        ((0.0, 1.0), (1, 1)),
    ],
)
def test_an_interval_covers_a_rate_between_its_ends(rates, expected):
    assert covered(rates) == expected


def test_a_rate_at_the_end_of_its_interval_is_covered_however_it_is_rounded():
    assert covered((0.66667, 0.33333), alarm=(0.1, 2 / 3), accuracy=(1 / 3, 0.9)) == (1, 1)
    assert covered((0.667, 0.333), alarm=(0.1, 2 / 3), accuracy=(1 / 3, 0.9)) == (0, 0)


def test_the_audit_is_recorded_figure_by_figure():
    truth = {"false_alarms": 0.05, "known_accuracy": 0.9}
    expected = {
        "nothing_unknown": 0.0,
        "shift_found": 1.0,
        "p_value": 0.004,
        "false_alarm_low": 0.0,
        "false_alarm_high": 0.1,
        "false_alarm_covered": 1.0,
        "known_accuracy_low": 0.8,
        "known_accuracy_high": 1.0,
        "known_accuracy_covered": 1.0,
        "unknown_share_estimate": 0.3,
        "unknown_share_low": 0.2,
        "unknown_share_high": 0.4,
    }
    assert judge_audit(truth, audit_of()) == expected
    recall = Estimate(0.7, 0.6, 0.8)
    assert judge_audit(truth, audit_of(unknown_recall=recall)) == expected | {
        "unknown_recall_estimate": 0.7,
        "unknown_recall_low": 0.6,
        "unknown_recall_high": 0.8,
    }


def test_a_method_without_steps_has_no_figures_of_them(seeded):
    split, solution = seeded
    steps = judge_steps(split, solution)
    assert steps.items() <= figures_of(split, solution).items()
    judgement, _ = judged(RIGHT_ON_POOL, [0] * 6)
    assert not steps.keys() - {"unknown_recall"} & judgement.metrics.keys()
