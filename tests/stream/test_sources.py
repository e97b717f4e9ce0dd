"""Windows of texts from another writer: compared, and answered, as texts."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.data.corruptions import add_typing_errors
from s2osc.pipeline.presets import HEADS
from s2osc.stream import sources
from s2osc.stream.learner import Incremental, for_streams
from s2osc.stream.originals import Originals
from s2osc.stream.queries import QuerySettings
from s2osc.stream.sources import OriginalsLearner, with_originals
from s2osc.stream.store import open_store, read_state
from s2osc.stream.windows import begin_stream, open_window, take_answers
from s2osc.types import Labelled
from samples import shrink
from texts import WORDS, easy_texts, embed_texts

CLASSES = tuple(WORDS)


def texts_of(n, seed):
    labels = np.arange(n) % len(CLASSES)
    return np.array(easy_texts([CLASSES[c] for c in labels], seed=seed), object), labels


@pytest.fixture(scope="module")
def begun():
    """A stream of texts, with what its items are features of."""
    texts, labels = texts_of(600, seed=0)
    features = embed_texts(texts)
    method = for_streams(shrink(HEADS, n_steps=60, k=None))
    method = replace(method, seeds=replace(method.seeds, judges=0))
    state = begin_stream(
        Labelled(features, labels), CLASSES, Incremental(method), seed=0, device="cpu"
    )
    return with_originals(state, features, texts)


def opened(state, texts, *, as_texts):
    features, learner = embed_texts(texts), state.learner
    if as_texts:
        learner = OriginalsLearner(
            **vars(learner), window=texts, remembered=state.originals, embed=embed_texts
        )
    names = [str(row) for row in range(len(texts))]
    asking = QuerySettings(budget=10)
    return open_window(state, features, names, asking, learner=learner, device="cpu")


def test_everything_that_is_remembered_has_its_text(begun):
    memory = begun.knowledge.memory
    for items in (memory.exemplars, memory.seeds):
        texts = begun.originals.find(items.inputs)
        np.testing.assert_array_equal(embed_texts(texts), items.inputs)
    assert len(begun.originals.items) <= len(memory)


def test_typing_errors_of_a_window_are_named_and_no_discovery(begun):
    texts, labels = texts_of(500, seed=1)
    window = np.array(add_typing_errors(texts, 0.3, seed=2), object)
    solution = opened(begun, window, as_texts=True).recognition.solution
    assert solution.trust.audit.nothing_unknown
    assert "typing errors" in solution.trust.audit.sources.changes[0]
    assert np.mean(solution.answer.labels == labels) > 0.8
    plain = opened(begun, window, as_texts=False).recognition.solution
    assert not plain.trust.audit.sources or "typing" not in str(plain.trust.audit.sources.changes)


def test_texts_of_the_same_writer_are_answered_as_by_their_features(begun):
    texts, _ = texts_of(300, seed=3)
    by_text, by_features = (
        opened(begun, texts, as_texts=as_texts).recognition.solution for as_texts in (True, False)
    )
    np.testing.assert_array_equal(by_text.answer.labels, by_features.answer.labels)
    assert by_text.trust.audit.test.p_value == by_features.trust.audit.test.p_value


def test_without_the_text_of_an_item_features_are_compared(begun):
    texts, _ = texts_of(300, seed=3)
    few = Originals(begun.originals.keys[1:], begun.originals.items[1:])
    found = opened(replace(begun, originals=few), texts, as_texts=True).recognition
    again = opened(begun, texts, as_texts=False).recognition
    np.testing.assert_array_equal(found.predictions.labels, again.predictions.labels)


def test_texts_of_what_was_answered_are_remembered_and_others_are_not(begun, tmp_path):
    texts, labels = texts_of(300, seed=4)
    state = opened(begun, texts, as_texts=True).state
    state = with_originals(state, embed_texts(texts), texts)
    asked = [int(name) for name in state.questions.names]
    assert len(state.originals.items) <= len(begun.originals.items) + len(asked)
    answers = {str(row): CLASSES[labels[row]] for row in asked[:10]}
    learnt = take_answers(state, answers, device="cpu").state
    memory = learnt.knowledge.memory
    assert learnt.originals.find(memory.exemplars.inputs) is not None
    with open_store(tmp_path / "stream", make=True) as store:
        store.write(learnt, "answers")
    read = read_state(tmp_path / "stream").originals
    np.testing.assert_array_equal(read.items, learnt.originals.items)
    np.testing.assert_array_equal(read.keys, learnt.originals.keys)


def test_photos_are_remembered_up_to_a_limit(begun, monkeypatch, tmp_path):
    features = begun.knowledge.memory.exemplars.inputs
    photos = np.arange(len(features) * 12, dtype=np.uint8).reshape(-1, 2, 2, 3)
    state = with_originals(replace(begun, originals=None), features, photos)
    with open_store(tmp_path / "stream", make=True) as store:
        store.write(state, "photos")
    read = read_state(tmp_path / "stream").originals
    np.testing.assert_array_equal(read.find(features), state.originals.find(features))
    assert read.items.dtype == np.uint8
    monkeypatch.setattr(sources, "MOST_BYTES", photos.nbytes // 2)
    assert with_originals(replace(begun, originals=None), features, photos).originals is None
