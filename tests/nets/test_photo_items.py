"""Records of photos are rows like any others; filter and networks each see their own part."""

import numpy as np
import pytest

from s2osc.errors import SettingsError
from s2osc.nets.networks import NetworkSettings, as_tensor, item_shape, one_vector
from s2osc.nets.photo_items import features_of, is_photos, maps_of, photo_items, with_features
from s2osc.nets.start import start_network
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.sources.changes import ColumnChange

STACKED = np.random.default_rng(0).normal(size=(5, 3, 10)).astype(np.float32)


@pytest.fixture
def photos() -> np.ndarray:
    return photo_items(STACKED, n_features=4)


def test_features_come_first_and_maps_follow_in_half_the_bytes(photos):
    np.testing.assert_array_equal(features_of(photos), STACKED[:, :, :4])
    np.testing.assert_array_equal(maps_of(photos), STACKED[:, :, 4:].astype(np.float16))
    assert is_photos(photos)
    assert not is_photos(STACKED)


def test_records_are_picked_and_joined_as_rows(photos):
    joined = np.concatenate([photos[[3, 1]], photos[:1]])
    np.testing.assert_array_equal(features_of(joined), STACKED[[3, 1, 0], :, :4])


def test_networks_get_the_maps_and_everything_else_the_features(photos):
    np.testing.assert_array_equal(as_tensor(photos).numpy(), maps_of(photos))
    assert item_shape(photos) == (6,)
    np.testing.assert_allclose(one_vector(photos), STACKED[:, :, :4].mean(axis=1))


def test_scaling_and_changes_of_the_source_leave_maps_and_the_items_given_alone(photos):
    before = photos.copy()
    scaled = fit_scaling(photos, photos[:2]).transform(photos)
    plain = fit_scaling(STACKED[:, :, :4], STACKED[:2, :, :4]).transform(STACKED[:, :, :4])
    np.testing.assert_allclose(features_of(scaled), plain, rtol=1e-6)
    moved = ColumnChange(np.ones(4), 0.0, np.ones(4)).apply(photos, seed=0)
    np.testing.assert_allclose(features_of(moved), STACKED[:, :, :4] + 1, rtol=1e-6)
    for changed in (scaled, moved):
        np.testing.assert_array_equal(maps_of(changed), maps_of(photos))
    np.testing.assert_array_equal(photos, before)


def test_other_items_are_their_own_features():
    assert features_of(STACKED) is STACKED
    changed = 2 * STACKED
    assert with_features(STACKED, changed) is changed


def test_a_pretrained_network_takes_photos_alone_and_no_other_does(photos):
    with pytest.raises(SettingsError, match="the items are no photos"):
        start_network(NetworkSettings(pretrained="efficientnet-lite0"), STACKED, 2)
    with pytest.raises(SettingsError, match="'none', but the items are photos"):
        start_network(NetworkSettings(), photos, 2)
