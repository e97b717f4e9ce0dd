"""Image operations on a batch, each with its own strength per image.

Every operation takes uint8 images ``(n, C, H, W)``, C = 1 or 3, and levels ``(n,)`` from 0 to 1,
and returns images of the same type and memory format. What a level means follows CTAugment
(Berthelot et al. 2020), what an operation does follows PIL, down to its rounding: enhancements
blend with a factor from 0.1 to 2, geometry takes the nearest pixel and fills with black.
"""

import math
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

GREY = 127
MAX_DEGREES = 45.0
MAX_SHEAR = 0.3
MAX_TRANSLATION = 0.3  # of the side
MAX_CROP = 0.25  # of the side, at each edge
FIXED_POINT_BITS = 16  # PIL's affine transform counts in 1/65536 pixels


def identity(images: Tensor) -> Tensor:
    """The images as they are."""
    return images


# --- colours ---------------------------------------------------------------------------------


def invert(images: Tensor, level: Tensor) -> Tensor:
    """Blend towards the negative."""
    return _blend(images, 255 - images, level)


def solarize(images: Tensor, level: Tensor) -> Tensor:
    """Invert every value from a threshold on; level 0 inverts all, level 1 only white."""
    threshold = _per_image((level * 255.999).to(torch.uint8))
    return torch.where(images < threshold, images, 255 - images)


def posterize(images: Tensor, level: Tensor) -> Tensor:
    """Keep the highest 1 (level 0) to 8 (level 1) bits."""
    bits = 1 + (level * 7.999).long()
    return images & _per_image((256 - 2 ** (8 - bits)).to(torch.uint8))


def brightness(images: Tensor, level: Tensor) -> Tensor:
    """Darken towards black, or brighten."""
    return _enhance(torch.zeros_like(images), images, level)


def color(images: Tensor, level: Tensor) -> Tensor:
    """Fade towards grey, or saturate; grey images have no colour and stay as they are."""
    return images if images.shape[1] == 1 else _enhance(_grey(images), images, level)


def contrast(images: Tensor, level: Tensor) -> Tensor:
    """Fade towards each image's mean grey, or move away from it."""
    mean = (_grey(images).double().mean(dim=(1, 2, 3)) + 0.5).to(torch.uint8)
    return _enhance(_per_image(mean), images, level)


def autocontrast(images: Tensor, level: Tensor) -> Tensor:
    """Blend towards each channel stretched over 0 to 255."""
    pixels = images.flatten(2)
    lowest, highest = (bound.unsqueeze(2).double() for bound in (pixels.amin(2), pixels.amax(2)))
    values = torch.arange(256, dtype=torch.float64, device=images.device)
    # A scalar over a tensor would be a product with the reciprocal, which rounds differently.
    scale = torch.full_like(lowest, 255) / (highest - lowest)
    stretched = (values * scale - lowest * scale).clamp(0, 255)
    tables = torch.where(highest > lowest, stretched, values)
    return _blend(images, _look_up(images, tables.to(torch.uint8)), level)


def equalize(images: Tensor, level: Tensor) -> Tensor:
    """Blend towards each channel with a flat histogram."""
    counts = _histograms(images)
    values = torch.arange(256, device=images.device)
    at_highest = counts.gather(2, images.flatten(2).amax(2, keepdim=True).long())
    step = (counts.sum(2, keepdim=True) - at_highest) // 255
    below = counts.cumsum(2) - counts
    flat = ((step // 2 + below) // step.clamp(min=1)).clamp(max=255)
    # Too few pixels below the brightest value to fill 255 steps: PIL leaves the channel alone.
    tables = torch.where(step > 0, flat, values)
    return _blend(images, _look_up(images, tables.to(torch.uint8)), level)


# --- neighbourhoods --------------------------------------------------------------------------


def blur(images: Tensor, level: Tensor) -> Tensor:
    """Blend towards the mean of the 16 pixels two steps away."""
    return _blend(images, _blurred(images), level)


def smooth(images: Tensor, level: Tensor) -> Tensor:
    """Blend towards a mean over 3 x 3 pixels, the centre counting five times."""
    return _blend(images, _smoothed(images), level)


def sharpness(images: Tensor, level: Tensor) -> Tensor:
    """Move towards the smoothed image, or away from it."""
    return _enhance(_smoothed(images), images, level)


def cutout(images: Tensor, level: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Cover a square of up to half the shorter side with grey, clipped at the border.

    ``row`` and ``column`` from 0 to 1 place its centre.
    """
    height, width = images.shape[2:]
    half = (1 + (level * min(height, width) * 0.499).long()) // 2
    in_rows = _is_near(row, half, height)
    in_columns = _is_near(column, half, width)
    covered = in_rows[:, :, None] & in_columns[:, None, :]
    return images.clone().masked_fill_(covered[:, None], GREY)


# --- geometry --------------------------------------------------------------------------------


def rotate(images: Tensor, level: Tensor) -> Tensor:
    """Turn by -45 (level 0) to 45 (level 1) degrees."""
    return rotate_by(images, _both_ways(level) * MAX_DEGREES)


def rotate_by(images: Tensor, degrees: Tensor) -> Tensor:
    """Turn each image by its own angle around its centre, anticlockwise."""
    middle_y, middle_x = images.shape[2] / 2, images.shape[3] / 2
    angle = -torch.deg2rad(degrees.double())
    cos, sin = angle.cos(), angle.sin()
    offset_x = middle_x - cos * middle_x - sin * middle_y
    offset_y = middle_y + sin * middle_x - cos * middle_y
    return _affine(images, (cos, sin, offset_x), (-sin, cos, offset_y))


def shear_x(images: Tensor, level: Tensor) -> Tensor:
    """Slide each row sideways by -0.3 to 0.3 of its distance from the top."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _affine(images, (one, _both_ways(level) * MAX_SHEAR, zero), (zero, one, zero))


def shear_y(images: Tensor, level: Tensor) -> Tensor:
    """Slide each column up or down by -0.3 to 0.3 of its distance from the left."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _affine(images, (one, zero, zero), (_both_ways(level) * MAX_SHEAR, one, zero))


def translate_x(images: Tensor, level: Tensor) -> Tensor:
    """Move sideways by -0.3 to 0.3 of the width."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    distance = _both_ways(level) * MAX_TRANSLATION * images.shape[3]
    return _affine(images, (one, zero, distance), (zero, one, zero))


def translate_y(images: Tensor, level: Tensor) -> Tensor:
    """Move up or down by -0.3 to 0.3 of the height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    distance = _both_ways(level) * MAX_TRANSLATION * images.shape[2]
    return _affine(images, (one, zero, zero), (zero, one, distance))


def rescale(images: Tensor, level: Tensor, method: Tensor) -> Tensor:
    """Crop up to a quarter of the side at each edge and enlarge the rest to the old size.

    ``method`` from 0 to 1 picks PIL's Lanczos, bicubic, bilinear, box, Hamming or nearest filter,
    in this order. When enlarging, a box takes the nearest pixel, so that the last one is a box too.
    """
    numbers = (method * len(_FILTERS)).long().clamp(max=len(_FILTERS) - 1)
    crop = level.double() * MAX_CROP
    height, width = images.shape[2:]
    weights = {size: _filter_weights(crop, numbers, size) for size in {height, width}}
    # Width first, rounded in between, as PIL does it.
    wide = _rounded(images.float() @ weights[width].transpose(2, 3))
    return torch.empty_like(images).copy_(_rounded(weights[height] @ wide.float()))


def _filter_weights(crop: Tensor, numbers: Tensor, size: int) -> Tensor:
    """Weights ``(n, 1, size, size)`` of the cropped pixels in each enlarged one."""
    first, last = (crop * size).round()[:, None], ((1 - crop) * size).round()[:, None]
    middles = torch.arange(size, dtype=torch.float64, device=crop.device) + 0.5
    centres = first + middles * ((last - first) / size)
    distances = middles - centres[:, :, None]
    is_inside = (middles > first) & (middles < last)
    weights = torch.empty_like(distances)
    for number in numbers.unique().tolist():
        weights[numbers == number] = _FILTERS[number](distances[numbers == number])
    weights *= is_inside[:, None, :]
    return (weights / weights.sum(2, keepdim=True)).float()[:, None]


def _lanczos(x: Tensor) -> Tensor:
    return torch.sinc(x) * torch.sinc(x / 3) * (x.abs() < 3)


def _bicubic(x: Tensor) -> Tensor:
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, far * (x < 2))


def _bilinear(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _box(x: Tensor) -> Tensor:
    return ((x > -0.5) & (x <= 0.5)).double()


def _hamming(x: Tensor) -> Tensor:
    return torch.sinc(x) * (0.54 + 0.46 * (math.pi * x).cos()) * (x.abs() < 1)


_FILTERS = (_lanczos, _bicubic, _bilinear, _box, _hamming, _box)


# --- what they share -------------------------------------------------------------------------

Row = tuple[Tensor, Tensor, Tensor]  # (n,) each: source = a * x + b * y + c


def _affine(images: Tensor, to_x: Row, to_y: Row) -> Tensor:
    """Fetch every pixel from where the two rows of a matrix say, black from outside."""
    height, width = images.shape[2:]
    framed = pad(images, (1, 1, 1, 1)).flatten(2)  # all that lies outside is one black pixel away
    x = _sources(to_x, height, width).clamp_(-1, width)
    y = _sources(to_y, height, width).clamp_(-1, height)
    places = ((y + 1) * (width + 2) + (x + 1)).long().flatten(1)
    fetched = framed.gather(2, places[:, None, :].expand(-1, images.shape[1], -1))
    return torch.empty_like(images).copy_(fetched.view(images.shape))


def _sources(row: Row, height: int, width: int) -> Tensor:
    """The source column (or row) ``(n, H, W)`` of each pixel's centre, in PIL's fixed point."""
    a, b, c = (part.double() for part in row)
    a_fixed, b_fixed, c_fixed = (
        (part * (1 << FIXED_POINT_BITS) + 0.5).floor().int()[:, None, None]
        for part in (a, b, c + 0.5 * a + 0.5 * b)
    )
    x = torch.arange(width, dtype=torch.int32, device=a.device)
    y = torch.arange(height, dtype=torch.int32, device=a.device)[:, None]
    return ((a_fixed * x + c_fixed) + b_fixed * y) >> FIXED_POINT_BITS


def _per_image(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1)


def _both_ways(level: Tensor) -> Tensor:
    return 2 * level - 1


def _blend(first: Tensor, second: Tensor, factor: Tensor) -> Tensor:
    """``first`` at factor 0, ``second`` at 1, beyond it above 1; PIL truncates."""
    start = first.float()
    return (start + _per_image(factor) * (second.float() - start)).clamp_(0, 255).to(torch.uint8)


def _enhance(degenerate: Tensor, images: Tensor, level: Tensor) -> Tensor:
    return _blend(degenerate, images, 0.1 + 1.9 * level)


def _rounded(values: Tensor) -> Tensor:
    return (values + 0.5).clamp_(0, 255).to(torch.uint8)


def _grey(images: Tensor) -> Tensor:
    """Luma of ITU-R 601 in PIL's integers, ``(n, 1, H, W)``."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.int().split(1, dim=1)
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)


def _histograms(images: Tensor) -> Tensor:
    """How often each value occurs in each channel, ``(n, C, 256)``."""
    n, channels = images.shape[:2]
    channel = torch.arange(n * channels, device=images.device).view(n, channels, 1)
    cells = channel * 256 + images.flatten(2)
    return torch.bincount(cells.flatten(), minlength=n * channels * 256).view(n, channels, 256)


def _look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Replace every value by its entry in its channel's table ``(n, C, 256)``."""
    found = tables.gather(2, images.flatten(2).long()).view(images.shape)
    return torch.empty_like(images).copy_(found)


def _window_sums(values: Tensor, side: int) -> Tensor:
    """Sums over every ``side`` x ``side`` window."""
    height, width = values.shape[2:]
    across = [values[:, :, :, i : width - side + 1 + i] for i in range(side)]
    columns = reduce(torch.add, across)
    return reduce(torch.add, [columns[:, :, i : height - side + 1 + i] for i in range(side)])


def _smoothed(images: Tensor) -> Tensor:
    """PIL's SMOOTH filter; the outermost pixels stay as they are."""
    smoothed = images.clone()
    if min(images.shape[2:]) >= 3:
        values = images.short()
        weighted = _window_sums(values, 3) + 4 * values[:, :, 1:-1, 1:-1]
        smoothed[:, :, 1:-1, 1:-1] = _rounded(weighted / 13)
    return smoothed


def _blurred(images: Tensor) -> Tensor:
    """PIL's BLUR filter, the rim of 5 x 5 pixels; the two outermost pixels stay as they are."""
    blurred = images.clone()
    if min(images.shape[2:]) >= 5:
        values = images.short()
        rim = _window_sums(values, 5) - _window_sums(values[:, :, 1:-1, 1:-1], 3)
        blurred[:, :, 2:-2, 2:-2] = _rounded(rim / 16)
    return blurred


def _is_near(place: Tensor, half: Tensor, size: int) -> Tensor:
    """Which of ``size`` positions lie within ``half`` of the centre, ``(n, size)``."""
    centre = (place * size).long().clamp(max=size - 1)[:, None]
    positions = torch.arange(size, device=place.device)
    return (positions >= centre - half[:, None]) & (positions < centre + half[:, None])
