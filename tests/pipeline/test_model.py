"""Models that answer for new items: how what f and g saw becomes an answer."""

from dataclasses import dataclass, field
from math import log

import numpy as np
import pytest

from s2osc.nets.training import Outputs
from s2osc.pipeline.audit.confidence import Confidence, Curve
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.pipeline.filter.distinctness import FilterSettings, Units
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.clusters import Grouping
from s2osc.pipeline.grouping.space import GroupingSpace
from s2osc.pipeline.model import CalibrationScores, KnownOnlyModel, OpenSetModel
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher, TeacherOutputs
from s2osc.types import UNKNOWN

# The inputs of these models are single numbers, which the space of the groups takes as they are.
SPACE = GroupingSpace(np.zeros(1), np.ones(1), np.eye(1), np.eye(1))


@dataclass(frozen=True, eq=False)
class Remembering(Teacher):
    """An f with given outputs."""

    teacher_outputs: TeacherOutputs = field(kw_only=True)

    def outputs(self, inputs):
        return self.teacher_outputs


@dataclass(frozen=True, eq=False)
class Answering(Student):
    logits: np.ndarray = field(kw_only=True)

    def outputs(self, inputs):
        return Outputs(self.logits, np.zeros((len(self.logits), 2)))


def make_teacher(taught, entropy=0.0, distance=0.0):
    n = len(taught)
    taught = np.array(taught)
    teacher_outputs = TeacherOutputs(
        taught, np.broadcast_to(entropy, n), np.broadcast_to(distance, n), np.zeros((n, 2))
    )
    return Remembering(None, np.zeros((taught.shape[1], 2)), teacher_outputs=teacher_outputs)


def answer(logits, taught, **changes):
    """The answer of a model whose f and g gave these logits; groups lie around 0 and 10."""
    return answer_and_model(logits, taught, **changes)[0]


def answer_and_model(
    logits,
    taught,
    *,
    unknown="one",
    vote=False,
    inputs=None,
    threshold=None,
    of_class=None,
    calibration=None,
    confidence=None,
    **teacher_outputs,
):
    n = len(logits)
    groups = np.repeat([0, 1], 3)
    tree = GroupTree(((-1, -2),), (0.9,), (1, 1))
    grouping = Grouping(10.0 * groups[:, None], groups, tree, (0, 1), np.ones(2), np.inf, 0)
    model = OpenSetModel(
        make_teacher(taught, **teacher_outputs),
        Answering(None, unknown, vote, logits=np.array(logits)),
        SPACE,
        grouping,
        FilterSettings(),
        Units(0.5, 10.0),
        None if threshold is None else Thresholds(threshold, of_class or {}),
        calibration=calibration,
        confidence=confidence,
    )
    inputs = np.zeros(n) if inputs is None else np.array(inputs)
    return model.answer(inputs.astype(np.float32)[:, None]), model


EVEN = [[0.0, 0.0]]


def test_the_answer_is_combined_from_what_f_and_g_saw():
    logits = [[log(3), 0.0, 0.0], [0.0, 0.0, log(8)]]
    entropy, distance = np.array([0.5, 1.0]), np.array([10.0, 30.0])
    found = answer(logits, EVEN * 2, inputs=[9, 9], entropy=entropy, distance=distance)
    assert found.labels.tolist() == [0, UNKNOWN]
    assert found.groups.tolist() == [-1, 1]
    np.testing.assert_allclose(found.confidence, [0.6, 0.8])
    np.testing.assert_allclose(found.unknown_score, [0.2, 0.8])
    np.testing.assert_allclose(found.distinctness, [0.5 / 0.5 + 10 / 10, 1 / 0.5 + 30 / 10])
    assert not found.filtered.any()


def test_by_vote_f_may_overrule_g_on_which_known_class_it_is():
    found = answer([[log(2), 0.0, 0.0]], [[0.0, log(10)]], vote=True)
    assert found.labels.tolist() == [1]  # 2 * 1 against 1 * 10
    np.testing.assert_allclose(found.confidence, [0.75 * 10 / 12])


def test_in_the_binary_variant_f_names_the_known_class():
    found = answer([[log(4), 0.0], [0.0, log(4)]], [[0.0, log(3)]] * 2, unknown="many")
    assert found.labels.tolist() == [1, UNKNOWN]
    np.testing.assert_allclose(found.confidence, [0.8 * 0.75, 0.8])


def test_an_unknown_item_joins_the_group_it_is_nearest_to():
    found = answer([[0.0, 0.0, 5.0]] * 3, EVEN * 3, inputs=[1, 8, 2])
    assert found.groups.tolist() == [0, 1, 0]


def test_without_a_threshold_the_largest_output_of_g_decides():
    # C' has the largest output but less than half of the probability.
    found = answer([[0.0, 0.0, log(1.5)]], EVEN)
    assert found.labels.tolist() == [UNKNOWN]


@pytest.mark.parametrize(
    ("threshold", "unknown"),
    [(-np.inf, [True, True]), (0.0, [False, True]), (2.0, [False, False]), (np.inf, [False] * 2)],
)
def test_a_threshold_is_one_on_the_log_odds_of_g(threshold, unknown):
    # odds of C': log(1.5 / 2) < 0 and log(8 / 2) = 1.39
    found = answer([[0.0, 0.0, log(1.5)], [0.0, 0.0, log(8)]], EVEN * 2, threshold=threshold)
    assert found.is_unknown.tolist() == unknown
    assert (found.groups >= 0).tolist() == unknown


def test_no_items_have_no_answer():
    found = answer(np.zeros((0, 3)), np.zeros((0, 2)))
    assert found.labels.shape == found.groups.shape == (0,)


def test_new_items_are_unknown_exactly_up_to_the_operating_point():
    calibration = CalibrationScores(np.array([-2.0, 0.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0, 1.0]))
    odds = np.array([-9.0, 0.0, 1.0, 2.0, 3.0, 9.0])
    logits = np.column_stack([np.full((6, 2), -log(2)), odds])
    found, model = answer_and_model(
        logits, np.zeros((6, 2)), threshold=1.0, calibration=calibration
    )
    np.testing.assert_allclose(found.p_known, [1, 6 / 7, 5 / 7, 3 / 7, 3 / 7, 2 / 7])
    assert model.operating_point == 3 / 7
    np.testing.assert_array_equal(found.labels == UNKNOWN, found.p_known <= model.operating_point)


# f alone


def test_f_alone_compares_entropies_and_reaches_no_operating_point():
    entropy = np.array([log(2), 0.0])
    calibration = CalibrationScores(np.array([0.0, 0.1, 0.2]), np.ones(3))
    model = KnownOnlyModel(make_teacher(np.zeros((2, 2)), entropy), calibration=calibration)
    found = model.answer(np.zeros((2, 1), np.float32))
    assert found.p_known.tolist() == [0.25, 1.0]
    assert model.operating_point == 0
    without = KnownOnlyModel(make_teacher(np.zeros((2, 2)), entropy))
    assert without.answer(np.zeros((2, 1), np.float32)).p_known is None


def test_f_alone_names_a_known_class_and_never_calls_anything_unknown():
    taught = [[log(3), 0.0], [0.0, log(9)]]
    entropy = np.array([log(2), 0.0])
    model = KnownOnlyModel(make_teacher(taught, entropy, np.array([1.0, 2.0])))
    found = model.answer(np.zeros((2, 1), np.float32))
    assert found.labels.tolist() == [0, 1]
    assert found.groups.tolist() == [-1, -1]
    np.testing.assert_allclose(found.confidence, [0.75, 0.9])
    np.testing.assert_allclose(found.unknown_score, [1.0, 0.0])
    np.testing.assert_allclose(found.distinctness, [log(2) + 1, 2.0])
    p = model.probabilities(np.zeros((2, 1), np.float32))
    np.testing.assert_allclose(p, [[0.75, 0.25, 0.0], [0.1, 0.9, 0.0]])


def test_a_class_may_have_a_threshold_of_its_own():
    logits = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    calibration = CalibrationScores(np.array([-2.0, -1.0, 0.0, 5.0]), np.ones(4))
    found, model = answer_and_model(
        logits, EVEN * 2, threshold=-1.0, of_class={1: 0.0}, calibration=calibration
    )
    assert found.labels.tolist() == [UNKNOWN, 1]
    points = model.operating_points(found.nearest)
    np.testing.assert_allclose(points, [0.6, 0.4])
    np.testing.assert_array_equal(found.p_known <= points, found.labels == UNKNOWN)


def test_the_confidence_of_new_items_is_that_of_the_calibration():
    confidence = Confidence(Curve((0.0, 2.0), (0.5, 0.9)), Curve((-9.0, 9.0), (0.0, 0.9)))
    found = answer([[log(3), 0.0, 0.0], [0.0, 0.0, 9.0 + log(2)]], EVEN * 2, confidence=confidence)
    assert found.labels.tolist() == [0, UNKNOWN]
    p = 0.9 * (9 - log(4)) / 18
    np.testing.assert_allclose(found.confidence, [(1 - p) * (0.5 + 0.2 * log(3)), 0.9])
