"""A pool that is too large to fit on: fitted on a sample, answered as a whole."""

import numpy as np
import pytest

from s2osc.data.corruptions import add_noise, add_typing_errors
from s2osc.errors import SettingsError
from s2osc.pipeline.large_pool import plan as plan_module
from s2osc.pipeline.large_pool.answer import answer_items
from s2osc.pipeline.large_pool.fit import fit_sample, p_value_of_far_items
from s2osc.pipeline.large_pool.plan import draw_sample, plan_fit
from s2osc.pipeline.large_pool.whole import fit_large_pool
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.sources.matched import RawItems
from s2osc.progress import Stopwatch
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, TINY, make_images
from texts import WORDS, easy_texts, embed_texts

FIT_ON = 600


def blobs(n_known, sizes, *, seed=0, distance=6.0):
    """Labelled items of three classes, and a pool of so many items of each class."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    labels = random.permutation(labels)
    known = np.repeat(np.arange(3), n_known)
    inputs = distance * np.eye(8)[np.append(known, labels)]
    inputs = (inputs + random.normal(size=inputs.shape)).astype(np.float32)
    truth = np.where(labels < 3, labels, UNKNOWN)
    return Labelled(inputs[: len(known)], known), inputs[len(known) :], truth


@pytest.fixture(scope="module")
def rare():
    """One item in a hundred is unknown."""
    return blobs(500, (1_000, 1_000, 1_000, 30))


@pytest.fixture(scope="module")
def fitted(rare):
    known, pool, _ = rare
    return fit_large_pool(SEEDED, known, pool, fit_on=FIT_ON, seed=0)


@pytest.fixture(scope="module")
def planned(rare):
    """The plan of a fit to that pool, its sample, and what was fitted to it."""
    known, pool, _ = rare
    plan = plan_fit(known, SEEDED.seeds, fit_on=FIT_ON, seed=0)
    sample = draw_sample(plan, plan.strangeness.strata(pool))
    items = pool[sample.pool], pool[sample.judged]
    return plan, sample, fit_sample(SEEDED, plan, sample, *items, Stopwatch(), device="cpu")


def test_a_pool_up_to_the_limit_is_fitted_as_ever():
    known, pool, _ = blobs(40, (50, 50, 50, 50))
    found = fit_large_pool(SEEDED, known, pool, fit_on=600, seed=0)
    expected = SEEDED.fit(known, pool, seed=0)
    np.testing.assert_array_equal(found.answer.labels, expected.answer.labels)
    np.testing.assert_array_equal(found.answer.unknown_score, expected.answer.unknown_score)


def test_a_rare_class_is_found_by_a_sample(rare, fitted):
    _, pool, truth = rare
    called = fitted.answer.labels == UNKNOWN
    assert called[truth == UNKNOWN].mean() > 0.9
    assert called[truth != UNKNOWN].mean() < 0.05
    assert len(called) == len(pool)
    assert (fitted.answer.labels == truth).mean() > 0.95


def test_the_sample_has_more_of_a_rare_class_than_an_even_one(rare):
    known, pool, truth = rare
    plan = plan_fit(known, SEEDED.seeds, fit_on=FIT_ON, seed=0)
    sample = draw_sample(plan, plan.strangeness.strata(pool))
    share = (truth[sample.pool] == UNKNOWN).mean()
    assert share > 2 * (truth == UNKNOWN).mean()


def test_the_audit_is_of_the_whole_pool(rare, fitted):
    _, pool, truth = rare
    audit, evidence = fitted.trust.audit, fitted.trust.evidence
    assert len(evidence.score) == len(pool)
    true_share = (truth == UNKNOWN).mean()
    assert audit.unknown_share.low <= true_share <= audit.unknown_share.high
    alarms = (fitted.answer.labels[truth != UNKNOWN] == UNKNOWN).mean()
    assert audit.false_alarm.low <= alarms <= audit.false_alarm.high


def by_far_items(known, pool, *, seed=0):
    scaling = fit_scaling(known.inputs, pool)
    scaled = scaling.transform_items(known)
    return p_value_of_far_items(scaling.transform(pool), scaled, (), seed=seed)


def test_all_labelled_items_judge_how_far_the_pool_lies_from_them():
    known, pool, _ = blobs(100, (1_000, 1_000, 1_000, 150), distance=8.0)
    assert by_far_items(known, pool) <= 1e-3
    plan = plan_fit(known, SEEDED.seeds, fit_on=FIT_ON, seed=0)
    assert len(plan.roles.everyone) == len(known)
    assert {row.tobytes() for row in plan.roles.everyone.inputs} == {
        row.tobytes() for row in known.inputs
    }


def test_how_far_a_pool_lies_keeps_its_level_with_few_labelled_items():
    p_values = []
    for seed in range(60):
        known, pool, _ = blobs(20, (700, 700, 70), seed=seed)
        p_values.append(by_far_items(known, pool, seed=seed))
    assert np.mean(np.array(p_values) <= 0.1) <= 0.2  # 12 of 60 come by chance in one of 100 trials


def test_a_class_that_the_whole_pool_shows_is_found_though_few_items_judge_the_sample():
    known, pool, truth = blobs(100, (1_000, 1_000, 1_000, 150), distance=8.0)
    found = fit_large_pool(SEEDED, known, pool, fit_on=FIT_ON, seed=0)
    called = found.answer.labels == UNKNOWN
    assert not found.trust.audit.nothing_unknown
    assert called[truth == UNKNOWN].mean() > 0.8
    assert called[truth != UNKNOWN].mean() < 0.1


def test_strange_known_items_are_no_discovery():
    known, pool, _ = blobs(500, (1_000, 1_000, 1_000), seed=2)
    found = fit_large_pool(SEEDED, known, pool, fit_on=FIT_ON, seed=0)
    assert found.trust.audit.nothing_unknown
    assert not (found.answer.labels == UNKNOWN).any()
    assert not found.trust.evidence.sources_differ


def test_another_source_is_told_of_and_judged_by_the_items_of_the_sample():
    known, pool, _ = blobs(500, (1_000, 1_000, 1_000), seed=1)
    random = np.random.default_rng(0)
    noisy = (pool + 1.0 * random.choice([-1, 1], pool.shape)).astype(np.float32)
    found = fit_large_pool(SEEDED, known, noisy, fit_on=FIT_ON, seed=0)
    assert found.trust.audit.sources_differ
    assert (found.answer.labels == UNKNOWN).mean() < 0.1
    assert len(found.trust.evidence.score) == len(pool)


def embed(photos):
    """Features as a network would make them: of all pixels, and not of their order alone."""
    mixing = np.random.default_rng(0).normal(size=(photos[0].size, 24))
    return np.tanh(photos.reshape(len(photos), -1) @ mixing / 2_000).astype(np.float32)


@pytest.mark.slow  # texts are quick, and photos in memory
@pytest.mark.usefixtures("just_as_users_get_it")
def test_photos_of_another_camera_are_compared_as_photos_in_a_large_pool(monkeypatch):
    """Some of the pool, drawn evenly, show what its camera does; labelled photos get it."""
    monkeypatch.setattr(plan_module, "MOST_COMPARED", 400)
    images, labels = make_images(600, 3)
    is_labelled = np.arange(len(images)) % 3 == 0
    pool = add_noise(images[~is_labelled], 12, seed=9)
    known = Labelled(embed(images[is_labelled]), labels[is_labelled])
    raw = RawItems(pool, images[is_labelled], embed)
    found = fit_large_pool(SEEDED, known, embed(pool), fit_on=FIT_ON, seed=0, raw=raw)
    (change,) = found.trust.audit.sources.changes
    assert "noise" in change
    assert found.trust.audit.nothing_unknown
    assert not (found.answer.labels == UNKNOWN).any()


def fit_to_texts_with_typing_errors(n_classes):
    """Labelled texts of the first classes; a pool of all, in which typing errors hardly show."""
    labels, classes = np.arange(300) % n_classes, np.arange(1_500) % 3
    known, texts = (
        np.array(easy_texts([list(WORDS)[c] for c in each], seed=seed))
        for each, seed in ((labels, 1), (classes, 101))
    )
    pool = add_typing_errors(texts, 0.2, seed=2)
    items, features = Labelled(embed_texts(known), labels), embed_texts(pool)
    raw = RawItems(pool, known, embed_texts)
    return fit_large_pool(SEEDED, items, features, fit_on=FIT_ON, seed=0, raw=raw), classes


def test_typing_errors_that_are_only_suspected_are_no_discovery_in_a_large_pool():
    found, classes = fit_to_texts_with_typing_errors(3)
    audit = found.trust.audit
    assert audit.nothing_unknown
    assert audit.source_is_suspected
    assert "typing errors" in audit.sources.changes[0]
    assert (found.answer.labels == classes).mean() > 0.8


@pytest.mark.slow  # in memory it is quick
def test_what_stands_out_from_texts_with_suspected_typing_errors_is_found_in_a_large_pool():
    found, classes = fit_to_texts_with_typing_errors(2)
    called = found.answer.labels == UNKNOWN
    assert called[classes == 2].mean() > 0.8
    sources = found.trust.audit.sources
    assert sources is None or not sources.changes


def test_changed_calibration_items_are_drawn_as_often_as_items_that_are_as_strange():
    known, pool, _ = blobs(2_000, (3_000, 3_000, 3_000), seed=2)
    plan = plan_fit(known, SEEDED.seeds, fit_on=5_000, seed=0)
    sample = draw_sample(plan, plan.strangeness.strata(pool))
    noise = np.random.default_rng(0).normal(size=plan.roles.calibration.inputs.shape)
    changed = (plan.roles.calibration.inputs + noise).astype(np.float32)
    again = sample.with_calibration(Labelled(changed, plan.roles.calibration.labels), seed=0)
    expected = sample.drawn.rates[plan.strangeness.strata(changed)].sum()
    assert expected > 1.5 * len(sample.calibration)
    assert abs(len(again.calibration) - expected) < 4 * np.sqrt(expected)
    assert again.pool is sample.pool
    n = len(again.pool)
    np.testing.assert_array_equal(again.drawn.rows[:n], again.pool)
    np.testing.assert_array_equal(again.drawn.rows[n:] - len(pool), again.calibration)
    assert len(again.drawn.is_even) == len(again.drawn.rows)


def test_a_known_item_of_the_pool_and_a_calibration_item_change_places(rare, planned):
    """Neither of them is in the sample, as most are not: then nothing else changes."""
    _, pool, truth = rare
    plan, sample, before = planned
    calibration = plan.roles.calibration
    seat = np.setdiff1d(np.arange(len(calibration)), sample.calibration)[0]
    same_class = np.flatnonzero(truth == calibration.labels[seat])
    row = np.setdiff1d(same_class, sample.pool)[0]

    swapped_pool, swapped = pool.copy(), calibration.inputs.copy()
    swapped_pool[row], swapped[seat] = calibration.inputs[seat], pool[row]
    roles = plan.roles._replace(calibration=Labelled(swapped, calibration.labels))
    after = fit_sample(
        SEEDED,
        plan._replace(roles=roles),
        sample,
        swapped_pool[sample.pool],
        swapped_pool[sample.judged],
        Stopwatch(),
        device="cpu",
    )
    assert before.evidence.score[row] == after.evidence.seed_score[seat]
    assert before.evidence.seed_score[seat] == after.evidence.score[row]
    others = np.arange(len(pool)) != row
    np.testing.assert_array_equal(before.evidence.score[others], after.evidence.score[others])


def test_calibration_items_are_drawn_into_the_sample_as_often_as_items_of_the_pool():
    known, pool, _ = blobs(2_000, (3_000, 3_000, 3_000), seed=2)
    plan = plan_fit(known, SEEDED.seeds, fit_on=5_000, seed=0)
    sample = draw_sample(plan, plan.strangeness.strata(pool))
    expected = sample.drawn.rates[plan.calibration_strata].sum()
    deviation = np.sqrt(expected)
    assert abs(len(sample.calibration) - expected) < 4 * deviation
    assert len(sample.calibration) > 0


def test_every_item_is_answered_as_a_new_item_is(rare, fitted):
    """The operating point of new items may lie lower, by less than one calibration item."""
    _, pool, _ = rare
    new = fitted.model.answer(pool)
    np.testing.assert_array_equal(new.nearest, fitted.answer.nearest)
    np.testing.assert_allclose(new.p_known, fitted.answer.p_known)
    n_calibration = len(fitted.trust.evidence.seed_score)
    differ = new.labels != fitted.answer.labels
    assert differ.mean() <= 2 / n_calibration


def test_parts_of_a_pool_are_answered_as_the_whole(rare, planned):
    _, pool, _ = rare
    _, _, fit = planned
    whole = answer_items(fit, pool, SEEDED.decision).answer
    parts = [answer_items(fit, p, SEEDED.decision).answer for p in np.array_split(pool, 5)]
    np.testing.assert_array_equal(whole.labels, np.concatenate([p.labels for p in parts]))
    np.testing.assert_allclose(
        whole.unknown_score, np.concatenate([p.unknown_score for p in parts]), atol=1e-5
    )


def test_the_method_of_the_paper_needs_no_held_back_items():
    known, pool, truth = blobs(100, (500, 500, 500, 300), seed=3)
    found = fit_large_pool(TINY, known, pool, fit_on=FIT_ON, seed=0)
    assert found.trust is None
    assert (found.answer.labels == truth).mean() > 0.8


def test_a_sample_that_is_too_small_is_refused():
    known, pool, _ = blobs(10, (10, 10, 10))
    with pytest.raises(SettingsError, match="fit-on is 10; give a number of items from 500"):
        fit_large_pool(SEEDED, known, pool, fit_on=10, seed=0)
