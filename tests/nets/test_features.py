"""Features: what the views of an image are, and that no image is computed twice."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from torch.nn import functional as F

from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.nets import features as features_module
from s2osc.nets.backbones import Backbone, resize
from s2osc.nets.features import compute_features, default_folder, view_draws, weak_photo_view

SIDE, N_FEATURES = 8, 12
NO_CHANGE = (1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 0.5)  # not mirrored, all of the picture, same colours


class Counter:
    """A network that counts the images it sees; its features are the colours of the quarters."""

    def __init__(self):
        self.n_images = 0
        self.stop_after = float("inf")

    def __call__(self, batch):
        self.n_images += len(batch)
        if self.n_images > self.stop_after:
            raise KeyboardInterrupt
        return F.adaptive_avg_pool2d(batch, 2).flatten(1)


@pytest.fixture
def network():
    return Counter()


@pytest.fixture
def backbone(network):
    return Backbone("quarters", "1", SIDE, N_FEATURES, (100.0,) * 3, (50.0,) * 3, network)


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of eight images, batches of four."""
    monkeypatch.setattr(features_module, "SHARD", 8)
    monkeypatch.setattr(features_module, "CPU_BATCH_PIXELS", 4 * SIDE**2)


def make_photos(n=6, shape=(10, 14, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def shards_in(folder):
    return sorted(Path(folder).rglob("*.safetensors"))


def view(pixels, draws, *, flip=True, side=SIDE):
    rows = torch.tensor([draws] * len(pixels), dtype=torch.float32)
    return weak_photo_view(pixels, rows, side, flip=flip)


# --- what comes out --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10, 14, 3), (9, 9)], ids=["colour", "grey"])
def test_the_first_slot_is_the_image_as_it_is_and_the_others_differ(backbone, tmp_path, shape):
    photos = make_photos(shape=shape)
    features = compute_features(photos, backbone, n_views=3, folder=tmp_path)
    assert features.shape == (6, 4, N_FEATURES)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[:, 0], backbone(photos), rtol=1e-3, atol=1e-3)
    for first in range(4):
        for second in range(first):
            assert (np.abs(features[:, first] - features[:, second]).max(axis=1) > 1e-3).all()


def test_an_image_has_the_same_views_in_any_company_and_order(backbone, tmp_path):
    photos = make_photos(40)
    whole = compute_features(photos, backbone, folder=tmp_path / "whole")
    order = np.random.default_rng(1).permutation(40)
    shuffled = compute_features(photos[order], backbone, folder=tmp_path / "shuffled")
    alone = compute_features(photos[7:8], backbone, folder=tmp_path / "alone")
    np.testing.assert_allclose(shuffled, whole[order], rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(alone, whole[7:8], rtol=2e-3, atol=1e-3)


def test_no_views_leaves_the_image_as_it_is(backbone, network, tmp_path):
    assert compute_features(make_photos(), backbone, n_views=0, folder=tmp_path).shape[1] == 1
    assert network.n_images == 6


def test_no_images_give_no_features(backbone, tmp_path):
    features = compute_features(make_photos(0), backbone, folder=tmp_path)
    assert features.shape == (0, 3, N_FEATURES)
    assert shards_in(tmp_path) == []


def test_a_negative_number_of_views_is_refused(backbone, tmp_path):
    with pytest.raises(SettingsError, match="number of views is -1"):
        compute_features(make_photos(), backbone, n_views=-1, folder=tmp_path)


def test_images_and_global_random_state_are_left_as_they_were(backbone, tmp_path):
    photos = make_photos()
    before, state = photos.copy(), torch.random.get_rng_state()
    compute_features(photos, backbone, folder=tmp_path)
    np.testing.assert_array_equal(photos, before)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_values_too_large_for_the_cache_stay_finite(backbone, tmp_path):
    loud = replace(backbone, scale=(1e-6,) * 3)
    assert np.isfinite(compute_features(make_photos(), loud, folder=tmp_path)).all()


def test_images_may_come_from_a_file_in_small_pieces(backbone, tmp_path):
    class Reader:
        """Gives slices of a file, and remembers the longest."""

        longest = 0

        def __init__(self, path):
            self.rows = np.load(path, mmap_mode="r")

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, rows):
            found = self.rows[rows]
            self.longest = max(self.longest, len(found))
            return found

    photos = make_photos(300, (4, 4))
    np.save(tmp_path / "photos.npy", photos)
    reader = Reader(tmp_path / "photos.npy")
    from_file = compute_features(reader, backbone, folder=tmp_path / "a")
    np.testing.assert_array_equal(
        from_file, compute_features(photos, backbone, folder=tmp_path / "b")
    )
    assert reader.longest <= 64


# --- views -----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [5, 20], ids=["smaller", "larger"])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_a_view_of_the_whole_picture_is_the_picture_resized(side, n_channels):
    pixels = torch.rand(2, n_channels, 12, 17, generator=torch.Generator().manual_seed(0)) * 255
    torch.testing.assert_close(
        view(pixels, NO_CHANGE, side=side), resize(pixels, side), rtol=0, atol=0.01
    )


def test_a_view_is_mirrored_for_half_of_the_draws_and_only_where_allowed():
    pixels = torch.rand(2, 3, 12, 12) * 255
    in_a_corner = (0.0, 0.2, 0.9, 0.5, 0.5, 0.5)
    straight = view(pixels, (0.51, *in_a_corner))
    torch.testing.assert_close(view(pixels, (0.49, *in_a_corner)), straight.flip(3))
    torch.testing.assert_close(view(pixels, (0.49, *in_a_corner), flip=False), straight)


def test_the_smallest_crop_holds_three_fifths_of_the_picture():
    ramp = torch.arange(100.0).expand(1, 1, 100, 100)
    at_left = view(ramp, (1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5), side=10)[0, 0, 5]
    at_right = view(ramp, (1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.5), side=10)[0, 0, 5]
    assert (at_left[-2] - at_left[1]).item() == pytest.approx(70 * 0.6**0.5, abs=0.5)
    assert (at_right - at_left)[1:-1].mean().item() == pytest.approx(100 * (1 - 0.6**0.5), abs=0.5)


def test_colours_move_and_greys_stay():
    colour = torch.full((1, 3, 8, 8), 100.0)
    brighter = (*NO_CHANGE[:4], 1.0, 0.5, 0.5)
    torch.testing.assert_close(view(colour, brighter), torch.full((1, 3, 8, 8), 120.0))
    torch.testing.assert_close(view(colour[:, :1], brighter), colour[:, :1])


def test_saturation_spares_greys_and_contrast_spares_the_mean():
    grey = torch.rand(1, 1, 8, 8).expand(1, 3, 8, 8) * 200
    torch.testing.assert_close(view(grey, (*NO_CHANGE[:6], 1.0)), grey, rtol=0, atol=1e-3)
    harder = view(100 + grey / 20, (*NO_CHANGE[:5], 1.0, 0.5))
    plain = 100 + grey / 20
    torch.testing.assert_close(harder.mean(), plain.mean())
    torch.testing.assert_close(harder.std(), 1.2 * plain.std())


@given(draws=st.tuples(*[st.floats(0, 1, width=32)] * 7), n_channels=st.sampled_from([1, 3]))
def test_every_view_is_a_picture(draws, n_channels):
    pixels = torch.from_numpy(make_photos(2, (n_channels, 9, 13))).float()
    seen = view(pixels, draws)
    assert seen.shape == (2, n_channels, SIDE, SIDE)
    assert 0 <= seen.min() <= seen.max() <= 255


def test_draws_fill_the_range_evenly_and_differ_between_images_and_views():
    keys = make_photos(2_000, (16,))
    first, second = view_draws(keys, 1), view_draws(keys, 2)
    assert 0 <= first.min() <= first.max() <= 1
    np.testing.assert_allclose(first.mean(axis=0), 0.5, atol=0.03)
    assert np.abs(np.corrcoef(first.T, second.T)[:7, 7:]).max() < 0.1
    assert np.abs(np.corrcoef(first.T) - np.eye(7)).max() < 0.1


# --- the cache -------------------------------------------------------------------------------


def test_a_second_run_computes_nothing_and_gives_the_same_to_the_bit(backbone, network, tmp_path):
    photos = make_photos(20)
    first = compute_features(photos, backbone, folder=tmp_path)
    network.n_images = 0
    second = compute_features(photos[::-1], backbone, folder=tmp_path)
    assert network.n_images == 0
    np.testing.assert_array_equal(second[::-1], first)


def test_a_pool_that_grew_computes_only_what_is_new(backbone, network, tmp_path):
    photos = make_photos(30)
    before = compute_features(photos[:20], backbone, folder=tmp_path)
    network.n_images = 0
    after = compute_features(photos, backbone, n_views=2, folder=tmp_path)
    assert network.n_images == 3 * 10
    np.testing.assert_array_equal(after[:20], before)


def test_an_image_that_occurs_often_is_computed_once(backbone, network, tmp_path):
    photos = make_photos(3)
    features = compute_features(photos[[0, 1, 0, 2, 0]], backbone, folder=tmp_path)
    assert network.n_images == 3 * 3
    np.testing.assert_array_equal(features[0], features[2])
    np.testing.assert_array_equal(features[0], features[4])
    np.testing.assert_array_equal(
        features[[0, 1, 3]], compute_features(photos, backbone, folder=tmp_path)
    )


@pytest.mark.usefixtures("small_shards")
def test_an_interrupted_run_goes_on_where_the_last_shard_ended(backbone, network, tmp_path):
    photos = make_photos(30)
    network.stop_after = 3 * 21
    with pytest.raises(KeyboardInterrupt):
        compute_features(photos, backbone, folder=tmp_path)
    assert len(shards_in(tmp_path)) == 2
    network.n_images, network.stop_after = 0, float("inf")
    resumed = compute_features(photos, backbone, folder=tmp_path)
    assert network.n_images == 3 * (30 - 16)
    whole = compute_features(photos, backbone, folder=tmp_path / "anew")
    np.testing.assert_allclose(resumed, whole, rtol=2e-3, atol=1e-3)


def test_the_bar_counts_what_is_left_to_compute(backbone, small_shards, tmp_path, monkeypatch):
    bars = []

    def track(items, what):
        if what == "features of images":
            bars.append(len(items))
        return items

    monkeypatch.setattr(features_module, "track", track)
    compute_features(make_photos(8), backbone, folder=tmp_path)
    compute_features(make_photos(9), backbone, folder=tmp_path)
    compute_features(make_photos(9), backbone, folder=tmp_path)
    assert bars == [2, 1]


def test_images_of_another_shape_are_other_images(backbone, tmp_path):
    flat = make_photos(4, (6, 8))
    wide = compute_features(flat, backbone, folder=tmp_path)
    high = compute_features(flat.reshape(4, 8, 6), backbone, folder=tmp_path)
    assert not np.isclose(wide[:, 0], high[:, 0]).all(axis=1).any()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "halves"},
        {"version": "2"},
        {"side": 6},
        {"mean": (0.0,) * 3},
        {"scale": (1.0,) * 3},
        {"n_views": 1},
        {"flip": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_features_of_another_kind_are_kept_apart(backbone, network, tmp_path, change):
    photos = make_photos()
    compute_features(photos, backbone, folder=tmp_path)
    network.n_images = 0
    views = {name: change[name] for name in ("n_views", "flip") if name in change}
    other = replace(backbone, **{name: change[name] for name in change if name not in views})
    compute_features(photos, other, **views, folder=tmp_path)
    assert network.n_images == 6 * (1 + change.get("n_views", 2))


def test_a_name_with_slashes_makes_one_folder(backbone, tmp_path):
    named = replace(backbone, name="../hf-hub:some/network")
    compute_features(make_photos(), named, folder=tmp_path / "cache")
    assert [path.parent.parent for path in shards_in(tmp_path)] == [tmp_path / "cache"]


def test_runs_at_the_same_time_share_a_cache(backbone, network, small_shards, tmp_path):
    photos = make_photos(60)
    parts = [photos[:40], photos[20:], photos, photos[::-1]]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda part: compute_features(part, backbone, folder=tmp_path), parts))
    network.n_images = 0
    whole = compute_features(photos, backbone, folder=tmp_path)
    assert network.n_images == 0
    np.testing.assert_allclose(runs[2], whole, rtol=2e-3, atol=1e-3)
    assert not list(tmp_path.rglob("*part"))


# --- a cache that cannot be used -------------------------------------------------------------


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-20])


def empty(path):
    path.write_bytes(b"")


def turn_a_bit(path):
    held = bytearray(path.read_bytes())
    held[-5] ^= 1
    path.write_bytes(held)


def hold_something_else(path):
    save_file({"weights": np.zeros(3)}, path)


def hold_other_types(path):
    save_file({name: array.astype(np.float32) for name, array in load_file(path).items()}, path)


def hold_other_sizes(path):
    held = load_file(path)
    save_file({**held, "features": held["features"][:, :, :-1].copy()}, path)


@pytest.mark.parametrize(
    "damage",
    [cut_short, empty, turn_a_bit, hold_something_else, hold_other_types, hold_other_sizes],
    ids=lambda damage: damage.__name__,
)
@pytest.mark.usefixtures("small_shards")
def test_a_damaged_shard_is_named_and_computed_again(backbone, network, tmp_path, damage):
    photos = make_photos(16)
    sound = compute_features(photos, backbone, folder=tmp_path)
    path = shards_in(tmp_path)[0]
    damage(path)
    network.n_images = 0
    with pytest.warns(S2OSCWarning, match=f"{path.name} is damaged or holds something else"):
        again = compute_features(photos, backbone, folder=tmp_path)
    assert network.n_images == 3 * 8
    np.testing.assert_array_equal(again, sound)


def test_a_cache_that_cannot_be_written_is_said_once_and_done_without(
    backbone, small_shards, tmp_path
):
    photos = make_photos(20)
    sound = compute_features(photos, backbone, folder=tmp_path / "sound")
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(S2OSCWarning, match="cannot be cached in .*S2OSC_CACHE") as caught:
        features = compute_features(photos, backbone, folder=tmp_path / "file")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(features, sound)


def test_a_full_disk_leaves_no_half_written_file(backbone, tmp_path, monkeypatch):
    def fill_up(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill_up)
    with pytest.warns(S2OSCWarning, match="No space left on device"):
        compute_features(make_photos(), backbone, folder=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]


# --- where it lies ---------------------------------------------------------------------------


def test_the_environment_says_where_features_are_kept(backbone, network, tmp_path, monkeypatch):
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "here"))
    assert default_folder() == tmp_path / "here"
    compute_features(make_photos(), backbone)
    assert len(shards_in(tmp_path / "here")) == 1


def test_without_a_word_features_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("S2OSC_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert default_folder() == tmp_path / ".cache" / "s2osc" / "features"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert default_folder() == tmp_path / "elsewhere" / "s2osc" / "features"
