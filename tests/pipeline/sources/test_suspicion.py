"""A source that is only suspected: what looks unknown must stand out from it, too."""

import numpy as np
import pytest

from s2osc.data.corruptions import add_column_noise, add_typing_errors
from s2osc.pipeline.audit.held_back import SeedSettings, hide_in_pool
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.sources import matching, suspicion
from s2osc.pipeline.sources.matched import RawItems
from s2osc.pipeline.sources.matching import (
    match_raw,
    match_sources,
)
from s2osc.pipeline.sources.suspicion import (
    STRONG_NOISE,
    changed_on_suspicion,
    suspected_of_raw,
    suspected_sources,
    thinned,
    unless_explained,
)
from s2osc.types import Labelled
from samples import make_blobs, open_set
from texts import WORDS, easy_texts, embed_texts

pytestmark = pytest.mark.usefixtures("as_users_get_it")


def matched_to_blobs(change=None, *, n=150, n_classes=4, n_known=None):
    """Blobs of which some are labelled, and the pool with a change, compared."""
    inputs, labels = make_blobs(n, n_classes)
    split = (
        open_set(inputs, labels) if n_known is None else open_set(inputs, labels, n_known=n_known)
    )
    pool = split.pool if change is None else change(split.pool)
    scaling = fit_scaling(split.known.inputs, pool)
    training, pooled = hide_in_pool(
        scaling.transform_items(split.known), scaling.transform(pool), SeedSettings(0.15), seed=0
    )
    return training, pooled, match_sources(training, pooled, scaling=scaling, seed=0)


def test_a_difference_that_is_not_clear_is_only_suspected():
    _, _, found = matched_to_blobs(lambda x: add_column_noise(x, 0.05, seed=1))
    unclear = found.last._replace(p_value=0.05)
    suspected = list(suspected_sources(found._replace(last=unclear), seed=0))
    assert suspected
    assert all(len(each.changes) == 1 and each.is_suspected for each in suspected)
    assert not found.is_suspected
    same = unclear._replace(p_value=0.5, n_compared=1_000)
    assert not list(suspected_sources(found._replace(last=same), seed=0))


def test_noise_that_few_items_cannot_rule_out_is_suspected():
    _, _, found = matched_to_blobs(lambda x: add_column_noise(x, 0.1, seed=1), n=40)
    *_, last = suspected_sources(found, seed=0)
    assert last.changes[0].noise in STRONG_NOISE
    assert not last.last.differ


def test_many_columns_are_moved_as_a_whole_once(monkeypatch):
    inputs, labels = make_blobs(100, 4)
    wide = np.tile(inputs, (1, matching.MOST_COLUMNS)).astype(np.float32)
    split = open_set(add_column_noise(wide, 0.5, seed=1), labels)
    scaling = fit_scaling(split.known.inputs, split.pool)
    training, pooled = hide_in_pool(
        scaling.transform_items(split.known), scaling.transform(split.pool), SeedSettings(), seed=0
    )
    found = match_sources(training, pooled, scaling=scaling, seed=0)
    assert matching.has_many_columns(found)
    changes, changed_by = [], matching.changed_by

    def noted(found, change, *, seed):
        changes.append(change)
        return changed_by(found, change, seed=seed)

    monkeypatch.setattr(matching, "changed_by", noted)
    suspected = list(changed_on_suspicion(found, seed=0))
    n_moved = sum(not change.noise and bool(change.offset.any()) for change in changes)
    assert n_moved <= 3  # in two ways as a whole, and column by column
    given = [
        (each.changes[0].offset.round(6).tobytes(), each.changes[0].noise) for each in suspected
    ]
    assert len(set(given)) == len(given)


def test_a_source_that_is_only_suspected_holds_nothing_against_a_pool_that_is_mostly_unknown():
    _, _, found = matched_to_blobs(n=100, n_classes=5, n_known=2)
    for suspected in suspected_sources(found, seed=0):
        assert suspected.unexplained == 0


def test_a_change_of_texts_that_is_only_suspected_gives_the_same_items_the_same_roles():
    labels = np.arange(240) % 3
    texts = np.array(easy_texts([list(WORDS)[c] for c in labels], seed=0))
    known, pool = texts[:120], add_typing_errors(texts[120:], 0.05, seed=1)
    items = Labelled(embed_texts(known), labels[:120])
    found = match_raw(items, embed_texts(pool), RawItems(pool, known, embed_texts), seed=0)
    assert not found.changes  # too few typing errors to be told
    settings, features = SeedSettings(share=0.3), embed_texts(pool)
    _, as_it_is = hide_in_pool(items, features, settings, seed=0)

    def hide(suspected):
        return hide_in_pool(suspected.training, features, settings, seed=0)

    suspects = list(suspected_of_raw(found, hide, seed=0))
    assert suspects
    for suspected in suspects:
        assert suspected.is_suspected
        assert not suspected.is_changed
        assert [change.kind for change in suspected.changes] == ["typing errors"]
        pooled = suspected.pooled
        np.testing.assert_array_equal(pooled.held_back_labels, as_it_is.held_back_labels)
        np.testing.assert_array_equal(pooled.of_pool(pooled.inputs), features)


def test_many_items_are_thinned_alike_and_few_are_not(monkeypatch):
    training, pooled, found = matched_to_blobs()
    assert thinned(found, seed=0) is None
    n = len(pooled.inputs) + len(training)
    monkeypatch.setattr(suspicion, "ENOUGH_TO_ASK", n // 2)
    few = thinned(found, seed=0)
    assert few.pooled.n == round(n // 2 / n * pooled.n)
    assert len(few.training) == round(n // 2 / n * len(training))
    np.testing.assert_array_equal(few.pooled.held_back_labels, pooled.held_back_labels)
    np.testing.assert_array_equal(
        few.pooled.of_held_back(few.pooled.inputs), pooled.of_held_back(pooled.inputs)
    )
    rows = {row.tobytes() for row in pooled.of_pool(pooled.inputs)}
    assert {row.tobytes() for row in few.pooled.of_pool(few.pooled.inputs)} <= rows
    strange = found._replace(pooled=pooled._replace(is_extra=np.zeros(pooled.n, bool)))
    assert thinned(strange, seed=0) is None


def test_the_first_change_that_explains_what_was_found_counts_and_others_are_not_asked():
    asked = []

    def explained_by(change):
        asked.append(change)
        return "nothing" if change == "offset" else None

    assert unless_explained("something", ["noise", "offset", "blur"], explained_by) == "nothing"
    assert asked == ["noise", "offset"]
    assert unless_explained("something", ["noise"], explained_by) == "something"
