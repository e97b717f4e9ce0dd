"""The graph of tensors answers as the model does, for every kind of model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from s2osc.pipeline.audit.confidence import Confidence, Curve
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.onnx_graph import AnswerGraph, CurveGraph
from s2osc.pipeline.presets import FAST, HEADS, PLAIN
from s2osc.types import Split
from samples import make_blobs, make_images, open_set, shrink

CLOSE = {"unknown_score": 1e-5, "p_known": 1e-9, "confidence": 1e-3}
"""A confidence is a steep curve over the log-odds of a softmax, in float32 close to 1."""


def answers(model: OpenSetModel | KnownOnlyModel, items: np.ndarray) -> dict[str, np.ndarray]:
    graph = AnswerGraph(model)
    with torch.inference_mode():
        found = graph(torch.from_numpy(items))
    return dict(zip(graph.output_names, (each.numpy() for each in found), strict=True))


def check_same(model: OpenSetModel | KnownOnlyModel, items: np.ndarray) -> np.ndarray:
    """The labels, after they and all else were found to be the model's."""
    found, answer = answers(model, items), model.answer(items)
    np.testing.assert_array_equal(found["label"], answer.labels)
    np.testing.assert_array_equal(found["nearest"], answer.nearest)
    for name, close in CLOSE.items():
        if name in found:
            np.testing.assert_allclose(found[name], getattr(answer, name), atol=close, err_msg=name)
    return answer.labels


def fitted(method: S2OSCMethod, split: Split) -> OpenSetModel | KnownOnlyModel:
    return shrink(method, n_steps=8, k=None).fit(split.known, split.pool, seed=0).model


@pytest.fixture(scope="module")
def of_vectors() -> tuple[OpenSetModel, np.ndarray]:
    split = open_set(*make_blobs(100))
    model = fitted(HEADS, split)
    assert isinstance(model, OpenSetModel)
    return model, split.pool


def test_vectors_are_scaled_voted_on_and_decided(of_vectors):
    model, pool = of_vectors
    labels = check_same(model, pool)
    assert (labels == -1).any()
    assert (labels >= 0).any()
    check_same(model, 1e4 * pool)


def test_images_enter_as_they_come(seeded):
    split, solution = seeded
    assert (check_same(solution.model, split.pool) == -1).any()
    colour = open_set(*make_images(60, colour=True))
    check_same(fitted(FAST, colour), colour.pool)


@pytest.mark.parametrize(
    "thresholds",
    [None, Thresholds(np.inf), Thresholds(-np.inf), Thresholds(0.0, {0: -50.0, 1: 50.0})],
)
def test_every_kind_of_threshold_is_part_of_it(of_vectors, thresholds):
    model, pool = of_vectors
    check_same(replace(model, thresholds=thresholds), pool)


@pytest.mark.parametrize(("unknown", "vote"), [("one", False), ("one", True)])
def test_g_alone_and_g_with_f_name_the_known(of_vectors, unknown, vote):
    model, pool = of_vectors
    student = replace(model.student, unknown=unknown, vote=vote, vote_weight=0.5)
    check_same(replace(model, student=student), pool)


def test_the_paper_has_neither_curves_nor_p_values():
    split = open_set(*make_blobs(60))
    model = fitted(PLAIN, split)
    assert "p_known" not in answers(model, split.pool)
    check_same(model, split.pool)


def test_f_alone_answers_where_nothing_is_unknown(of_vectors):
    model, pool = of_vectors
    alone = KnownOnlyModel(model.teacher, model.scaling, model.calibration, model.confidence)
    assert (check_same(alone, pool) >= 0).all()
    check_same(replace(alone, calibration=None, confidence=None), pool)


def test_steps_level_ends_and_single_points_of_curves_are_kept():
    places = np.array([-9.0, 0.0, 0.5, 1.0, 2.0, 9.0])
    for curve in (Curve((0.0, 1.0, 1.0, 2.0), (0.1, 0.2, 0.7, 1.0)), Curve((1.0,), (0.4,))):
        found = CurveGraph(curve)(torch.from_numpy(places)).numpy()
        np.testing.assert_allclose(found, curve(places))


def test_a_model_that_never_calls_anything_unknown_has_no_curve_for_it(of_vectors):
    model, pool = of_vectors
    assert model.confidence is not None
    named = Confidence(model.confidence.named)
    check_same(replace(model, confidence=named, thresholds=Thresholds(np.inf)), pool)
