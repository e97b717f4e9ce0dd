"""Episodes: known classes that are hidden, as if they were unknown."""

import numpy as np

from s2osc.pipeline.episodes import EpisodeSettings, draw_episodes

LABELS = np.repeat(range(5), 40)


def drawn(labels=LABELS, **settings):
    return draw_episodes(labels, EpisodeSettings(**settings), np.random.default_rng(0))


def test_hidden_items_are_of_hidden_classes_but_a_few():
    for episode in drawn():
        classes = LABELS[episode.hidden]
        assert len(set(classes[~episode.is_mistaken])) == episode.n_classes
        assert 0.02 < episode.is_mistaken.mean() < 0.08
        hidden = set(classes[~episode.is_mistaken])
        assert not hidden & set(classes[episode.is_mistaken])


def test_nobody_knows_the_label_of_a_hidden_item():
    for episode in drawn():
        hidden = set(LABELS[episode.hidden[~episode.is_mistaken]])
        assert not hidden & set(LABELS[episode.others])
        assert not set(episode.hidden) & set(episode.others)


def test_every_number_of_classes_is_hidden_and_one_class_is_left():
    assert {episode.n_classes for episode in drawn()} == {1, 2, 3, 4}
    assert {episode.n_classes for episode in drawn(np.repeat([0, 1], 30))} == {1, 2}


def test_n_classes_are_hidden_1_over_n_as_often_as_one():
    numbers = np.bincount([episode.n_classes for episode in drawn(n_episodes=250)])
    np.testing.assert_allclose(numbers[1:], [120, 60, 40, 30], atol=1)


def test_an_episode_is_not_too_large():
    assert max(len(episode.hidden) for episode in drawn(most_items=50)) <= 50 * 1.05 + 1


def test_classes_of_a_few_items_make_no_episode():
    assert drawn(np.repeat([0, 1, 2], 5)) == []
    assert drawn(np.repeat([0, 1], [50, 5])) == []
