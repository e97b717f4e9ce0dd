"""CTAugment: its equations, its draws, what it learns."""

import pytest
import torch

from s2osc.errors import SettingsError
from s2osc.nets.augmentation import ctaugment
from s2osc.nets.augmentation.ctaugment import (
    N_BINS,
    OPS,
    Choices,
    CTAugment,
    CTAugmentSettings,
    apply_choices,
    bin_probabilities,
    rate_update,
)
from s2osc.nets.augmentation.image_ops import GREY

NAMES = list(OPS)
FORMATS = [torch.contiguous_format, torch.channels_last]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_images(shape, memory_format=torch.contiguous_format):
    images = torch.randint(0, 256, shape, generator=seeded(5), dtype=torch.uint8)
    return images.to(memory_format=memory_format)


def choose(name, *levels, n=1):
    """One operation at these levels for each of n images."""
    padded = torch.zeros(n, 1, N_BINS.shape[1])
    padded[:, 0, : len(levels)] = torch.tensor(levels)
    return Choices(torch.full((n, 1), NAMES.index(name)), padded)


def test_operations_and_bins_are_those_of_the_paper():
    learnt = {name: tuple(bins for bins in op.bins if bins > 1) for name, op in OPS.items()}
    assert learnt.pop("identity") == ()
    assert learnt.pop("posterize") == (8,)
    assert learnt.pop("rescale") == (17, 6)
    assert len(learnt) == 16
    assert set(learnt.values()) == {(17,)}


def test_one_update_with_match_a_fifth_gives_the_rate_and_weight_of_the_equations():
    augment = CTAugment()
    augment.update(choose("rotate", 0.5), torch.tensor([0.2]))
    rates = augment.rates[NAMES.index("rotate"), 0]
    assert rates[8] == pytest.approx(0.992)
    weights = bin_probabilities(rates, decay=0.99, threshold=0.8)
    assert weights[8] == pytest.approx(0.99208, abs=5e-6)
    assert (weights[torch.arange(17) != 8] == 1).all()


def test_seventeen_updates_with_match_nought_put_a_bin_below_the_threshold_of_remixmatch():
    rate = torch.ones(2, dtype=torch.float64)
    for times in range(1, 18):
        rate[0] = rate_update(rate[0], torch.tensor(0.0), decay=0.99)
        weight = bin_probabilities(rate, decay=0.99, threshold=0.85)[0]
        assert (weight == 0) == (times == 17)


def test_a_batch_updates_as_often_as_its_images_meet_in_a_bin():
    together, one_by_one = CTAugment(), CTAugment()
    together.update(choose("shear_x", 0.99, n=5), torch.full((5,), 0.3))
    for _ in range(5):
        one_by_one.update(choose("shear_x", 0.99), torch.tensor([0.3]))
    torch.testing.assert_close(together.rates, one_by_one.rates)
    assert together.rates[NAMES.index("shear_x"), 0, 16] < 1


def test_an_update_touches_only_the_bins_that_were_drawn():
    augment = CTAugment()
    before = augment.rates.clone()
    augment.update(choose("rescale", 1.0, 0.4), torch.tensor([0.0]))
    changed = (augment.rates != before).nonzero().tolist()
    rescale = NAMES.index("rescale")
    # Rescale has two parameters; the third one's only bin is always drawn.
    assert changed == [[rescale, 0, 16], [rescale, 1, 2], [rescale, 2, 0]]


def test_a_perfect_match_changes_nothing():
    augment = CTAugment()
    before = augment.rates.clone()
    _, choices = augment.probe(random_images((50, 3, 8, 8)), seeded())
    augment.update(choices, torch.ones(50))
    torch.testing.assert_close(augment.rates, before)


def test_bins_below_the_threshold_are_never_drawn_and_the_others_are():
    augment = CTAugment()
    for level in torch.arange(7) / 8:
        choices = choose("posterize", float(level), n=100)
        augment.update(choices, torch.zeros(100))

    def drawn(augment, name, n_bins):
        choices = augment.draw_policy(5000, seeded())
        levels = choices.levels[choices.ops == NAMES.index(name)][:, 0]
        return set((levels * n_bins).long().tolist())

    assert drawn(augment, "posterize", 8) == {7}
    assert drawn(CTAugment(), "posterize", 8) == set(range(8))
    assert drawn(augment, "rotate", 17) == set(range(17))


def test_probes_draw_every_operation_and_levels_over_the_whole_range():
    _, choices = CTAugment().probe(random_images((1000, 1, 4, 4)), seeded())
    assert choices.ops.shape == (1000, 2)
    share = torch.bincount(choices.ops.flatten(), minlength=len(OPS)) / 2000
    torch.testing.assert_close(share, torch.full((len(OPS),), 1 / len(OPS)), atol=0.02, rtol=0)
    assert choices.levels.min() < 0.01
    assert choices.levels.max() > 0.99
    torch.testing.assert_close(choices.levels.mean(), torch.tensor(0.5), atol=0.02, rtol=0)


def test_each_image_gets_its_own_operation():
    images = random_images((3, 3, 16, 16))
    ops = torch.tensor([[NAMES.index(name)] for name in ("invert", "identity", "solarize")])
    levels = torch.tensor([1.0, 0.5, 0.0])[:, None, None].expand(3, 1, 3)
    applied = apply_choices(images, Choices(ops, levels))
    assert torch.equal(applied, torch.stack([255 - images[0], images[1], 255 - images[2]]))


def test_operations_follow_one_another_in_the_order_drawn():
    images = random_images((1, 1, 8, 8))
    ops = torch.tensor([[NAMES.index("posterize"), NAMES.index("invert")]])
    levels = torch.tensor([[[0.0, 0, 0], [1.0, 0, 0]]])
    expected = 255 - (images & 128)
    assert torch.equal(apply_choices(images, Choices(ops, levels)), expected)


def test_translate_moves_by_a_share_of_the_side_not_by_a_fraction_of_a_pixel():
    images = torch.zeros((1, 1, 32, 32), dtype=torch.uint8)
    images[:, :, 16, 16] = 255
    moved = apply_choices(images, choose("translate_x", 0.0))
    assert moved.nonzero().tolist() == [[0, 0, 16, 26]]
    moved = apply_choices(images, choose("translate_y", 1.0))
    assert moved.nonzero().tolist() == [[0, 0, 6, 16]]


def test_a_strong_view_ends_with_a_grey_square_of_half_the_side(monkeypatch):
    monkeypatch.setattr(ctaugment, "apply_choices", lambda images, choices: images)
    images = torch.zeros((200, 3, 32, 32), dtype=torch.uint8)
    views = CTAugment().augment(images, seeded())
    areas = (views == GREY).all(1).sum((1, 2))
    assert areas.max() == 256
    assert areas.min() >= 64
    assert areas.float().mean() < 250


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("shape", [(150, 3, 16, 16), (150, 1, 12, 20)])
@pytest.mark.parametrize("how", ["probe", "augment"])
def test_a_view_keeps_type_shape_and_memory_format_and_leaves_its_images_alone(
    how, shape, memory_format
):
    images = random_images(shape, memory_format)
    before = images.clone()
    viewed = getattr(CTAugment(), how)(images, seeded())
    viewed = viewed[0] if how == "probe" else viewed
    assert viewed.dtype == torch.uint8
    assert viewed.shape == images.shape
    assert viewed.is_contiguous(memory_format=memory_format)
    assert torch.equal(images, before)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_each_operation_keeps_type_shape_and_memory_format_and_its_images(
    name, n_channels, memory_format
):
    images = random_images((5, n_channels, 10, 14), memory_format)
    before = images.clone()
    op = OPS[name]
    levels = torch.rand(len(op.bins), 5, generator=seeded())
    changed = op.function(images, *levels)
    assert changed.dtype == torch.uint8
    assert changed.shape == images.shape
    assert changed.is_contiguous(memory_format=memory_format)
    assert torch.equal(images, before)


def test_the_generator_alone_decides_and_every_item_gets_its_own_draw():
    images = random_images((1, 3, 16, 16)).expand(60, -1, -1, -1).contiguous()
    state = torch.random.get_rng_state()
    for view in (
        lambda seed: CTAugment().augment(images, seeded(seed)),
        lambda seed: CTAugment().probe(images, seeded(seed))[0],
    ):
        assert torch.equal(view(1), view(1))
        assert not torch.equal(view(1), view(2))
        assert len(view(1).flatten(1).unique(dim=0)) > 50
    assert torch.equal(torch.random.get_rng_state(), state)


def test_an_empty_batch_has_an_empty_view():
    images, augment = random_images((0, 3, 8, 8)), CTAugment()
    assert augment.augment(images, seeded()).shape == images.shape
    probed, choices = augment.probe(images, seeded())
    assert probed.shape == images.shape
    augment.update(choices, torch.zeros(0))


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"decay": 1.0}, {"threshold": 0.0}])
def test_settings_that_cannot_be_used_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(SettingsError, match=rf"CTAugmentSettings\.{name} is .*; give a"):
        CTAugmentSettings(**wrong)
