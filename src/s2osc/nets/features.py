"""Features of images from a pretrained backbone, computed once per image and cached on disk.

The cache is a folder per backbone and kind of views. In it lie shards: safetensors files with
``keys``, a digest of each image, and ``features``. A shard is written whole under the digest of
what it holds and never changed, so that runs may share a cache, stop at any time, and tell a
damaged file from a sound one.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save
from torch import Tensor

from s2osc.errors import OutputError, S2OSCWarning, SettingsError
from s2osc.files import cache_folder, check_regular, lock, reason, write_whole
from s2osc.nets.backbones import Backbone, resize
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.networks import as_tensor
from s2osc.nets.photo_items import photo_items
from s2osc.progress import track

FORMAT = 1  # of the cache; another number whenever views or features change their meaning
SHARD = 1_024  # images: what an interruption can lose
READ_AT_ONCE = 64  # images
# A batch that leaves the processor's cache takes longer per image; on a GPU it is the other way.
CPU_BATCH_PIXELS, GPU_BATCH_PIXELS = 32 * 96**2, 512 * 96**2
KEY_BYTES = 16
SUFFIX, LOCK = ".safetensors", ".lock"
LONGEST_WAIT = 60  # seconds, for another run that writes a shard
MIN_AREA = 0.6  # of the picture, in a view
MAX_JITTER = 0.2  # of brightness, contrast and saturation, either way
N_DRAWS = 7  # random numbers per view
LUMA = (0.299, 0.587, 0.114)
LARGEST = float(np.finfo(np.float16).max)


class Images(Protocol):
    """An array ``(n, H, W[, 3])`` uint8, or whatever gives one for a slice."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> np.ndarray: ...


class Wanted(NamedTuple):
    """Which items a run needs the features of."""

    keys: np.ndarray  # (n, 16) uint8
    first: np.ndarray  # (n,) the row where each item occurs first


def compute_features(
    images: Images,
    backbone: Backbone,
    *,
    n_views: int = 2,
    flip: bool = True,
    folder: Path | None = None,
    dtype: type[np.floating] = np.float32,
) -> np.ndarray:
    """Features ``(n, 1 + n_views, n_features)``: each image as it is, then weak views.

    A view depends on nothing but the image and the view's number. What ``folder``, or
    ``default_folder()``, holds already is read from there; the rest is computed and added. All of
    them are numbers of 16 bits, whatever their ``dtype``.
    """
    if n_views < 0:
        raise SettingsError(f"the number of views is {n_views}; give a whole number from 0")
    wanted = _digest_images(images)
    pixels = GPU_BATCH_PIXELS if backbone.device.startswith("cuda") else CPU_BATCH_PIXELS

    def embed(rows: np.ndarray) -> np.ndarray:
        batch = np.concatenate([images[row : row + 1] for row in rows.tolist()])
        return _embed_views(batch, wanted.keys[rows], backbone, n_views, flip)

    return cached_features(
        wanted,
        embed,
        shape=(1 + n_views, backbone.n_features),
        shards=(folder or default_folder()) / _subfolder(backbone, n_views, flip),
        at_once=max(1, pixels // backbone.side**2),
        what="features of images",
        dtype=dtype,
    )


def compute_photo_items(
    images: Images,
    backbone: Backbone,
    *,
    n_views: int = 2,
    flip: bool = True,
    folder: Path | None = None,
) -> np.ndarray:
    """Images as inputs of the method: features and their views, or records with maps as well."""
    has_maps = backbone.first_stage is not None
    features = compute_features(
        images,
        backbone,
        n_views=n_views,
        flip=flip,
        folder=folder,
        # Maps are many, and stay as small as the cache holds them.
        dtype=np.float16 if has_maps else np.float32,
    )
    return photo_items(features, N_FEATURES) if has_maps else features


def cached_features(
    wanted: Wanted,
    embed: Callable[[np.ndarray], np.ndarray],
    *,
    shape: tuple[int, ...],
    shards: Path,
    at_once: int,
    what: str,
    dtype: type[np.floating] = np.float32,
) -> np.ndarray:
    """Features ``(n, *shape)`` of the items wanted: those in the folder ``shards`` are read.

    ``embed`` gives those of some rows; it gets ``at_once`` of them at most, none twice, and what it
    gives is added to the folder. ``what`` names the work on the progress bar.
    """
    features = np.empty((len(wanted.keys), *shape), dtype)
    is_done = _read_cached(shards, wanted, features)
    is_repeat = wanted.first != np.arange(len(wanted.keys))
    missing = np.flatnonzero(~is_done & ~is_repeat)
    n_saved, is_writable = 0, True
    starts = range(0, len(missing), at_once)
    for start in track(starts, what) if starts else ():
        rows = missing[start : start + at_once]
        features[rows] = rounded(embed(rows))
        n_done = start + len(rows)
        if is_writable and (n_done - n_saved >= SHARD or n_done == len(missing)):
            shard = missing[n_saved:n_done]
            is_writable = _write_shard(shards, wanted.keys[shard], features[shard])
            n_saved = n_done
    features[is_repeat] = features[wanted.first[is_repeat]]
    return features


def default_folder() -> Path:
    """``$S2OSC_CACHE``, else ``s2osc/features`` in the user's cache."""
    return cache_folder("S2OSC_CACHE", "features")


# --- images and their keys -------------------------------------------------------------------


def image_key(image: np.ndarray) -> bytes:
    """A digest of one image's size and pixels.

    >>> image_key(np.zeros((2, 3), np.uint8)) == image_key(np.zeros((3, 2), np.uint8))
    False
    """
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=KEY_BYTES)
    digest.update(image.tobytes())
    return digest.digest()


def _digest_images(images: Images) -> Wanted:
    """Read every image once, a few at a time."""
    starts = range(0, len(images), READ_AT_ONCE)
    digests = [
        image_key(image)
        for start in (track(starts, "digests of images") if starts else ())
        for image in images[start : start + READ_AT_ONCE]
    ]
    return wanted_items(digests)


def wanted_items(digests: Sequence[bytes]) -> Wanted:
    """Items by their digests of ``KEY_BYTES`` bytes."""
    rows: dict[bytes, int] = {}
    first = [rows.setdefault(digest, row) for row, digest in enumerate(digests)]
    keys = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, KEY_BYTES)
    return Wanted(keys, np.array(first, dtype=np.int64))


# --- views -----------------------------------------------------------------------------------


def _embed_views(
    batch: np.ndarray, keys: np.ndarray, backbone: Backbone, n_views: int, flip: bool
) -> np.ndarray:
    """Features ``(n, 1 + n_views, D)`` of one batch."""
    views = _views(batch, keys, backbone, n_views, flip)
    return np.stack([backbone.embed(view) for view in views], axis=1)


def _views(
    batch: np.ndarray, keys: np.ndarray, backbone: Backbone, n_views: int, flip: bool
) -> Iterator[Tensor]:
    """Each image as it is, then weak views: values from 0 to 255, ``(n, C, side, side)``."""
    pixels = as_tensor(batch, backbone.device).float()
    yield resize(pixels, backbone.side)
    for number in range(1, 1 + n_views):
        draws = torch.from_numpy(view_draws(keys, number)).to(backbone.device)
        yield weak_photo_view(pixels, draws, backbone.side, flip=flip)


def photo_views(images: np.ndarray, backbone: Backbone, *, n_views: int, flip: bool) -> np.ndarray:
    """What the backbone gets of each image, ``(n, 1 + n_views, C, side, side)`` float32."""
    keys = wanted_items([image_key(image) for image in images]).keys
    views = _views(images, keys, backbone, n_views, flip)
    return np.stack([view.cpu().numpy() for view in views], axis=1)


def view_draws(keys: np.ndarray, number: int) -> np.ndarray:
    """Random numbers from 0 to 1, ``(n, N_DRAWS)``, that belong to each image's view ``number``.

    >>> keys = np.zeros((1, 16), np.uint8)
    >>> first, again, second = (view_draws(keys, number) for number in (1, 1, 2))
    >>> bool((first == again).all()), bool((first == second).any())
    (True, False)
    """
    view = number.to_bytes(4, "little")
    digests = [
        hashlib.blake2b(key.tobytes() + view, digest_size=4 * N_DRAWS).digest() for key in keys
    ]
    words = np.frombuffer(b"".join(digests), "<u4").reshape(-1, N_DRAWS)
    return (words / 2.0**32).astype(np.float32)


def weak_photo_view(pixels: Tensor, draws: Tensor, side: int, *, flip: bool) -> Tensor:
    """A crop of at least 0.6 of each picture, brought to ``side`` x ``side``, perhaps mirrored.

    ``pixels`` are values from 0 to 255, ``(n, C, H, W)``. Colours move a little; grey stays.
    """
    mirror, area, top, left, *jitter = draws.unbind(1)
    zoom = (MIN_AREA + (1 - MIN_AREA) * area).sqrt()
    rows = _crop_weights(pixels.shape[2], side, zoom, top)
    columns = _crop_weights(pixels.shape[3], side, zoom, left)
    if flip:
        columns = torch.where((mirror < 0.5)[:, None, None], columns.flip(1), columns)
    view = rows[:, None] @ pixels.contiguous() @ columns.transpose(1, 2)[:, None]
    view = view.clamp_(0, 255)
    return _jitter_colours(view, jitter) if pixels.shape[1] == 3 else view


def _crop_weights(size: int, side: int, zoom: Tensor, place: Tensor) -> Tensor:
    """Weights ``(n, side, size)`` of the pixels along one axis in those of a resized crop.

    The filter is the antialiased bicubic one that ``resize`` uses; one matrix per image, since
    each has its own crop.
    """
    step = (zoom * (size / side))[:, None, None]
    start = (place * (1 - zoom) * size)[:, None, None]
    centres = start + step * (torch.arange(side, device=zoom.device)[:, None] + 0.5)
    pixels = torch.arange(size, device=zoom.device) + 0.5
    distance = ((pixels - centres) / step.clamp(min=1)).abs()
    near = (1.5 * distance - 2.5) * distance**2 + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    weights = torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))
    return weights / weights.sum(2, keepdim=True)


def _jitter_colours(images: Tensor, jitter: list[Tensor]) -> Tensor:
    """Brightness, contrast and saturation, each by its own factor per image."""
    brightness, contrast, saturation = (
        (1 + MAX_JITTER * (2 * level - 1)).view(-1, 1, 1, 1) for level in jitter
    )
    images = images * brightness
    luma = torch.tensor(LUMA, device=images.device).view(1, 3, 1, 1)
    grey = (images * luma).sum(1, keepdim=True)
    images = grey + saturation * (images - grey)
    mean = grey.mean((2, 3), keepdim=True)
    return (mean + contrast * (images - mean)).clamp_(0, 255)


# --- the cache -------------------------------------------------------------------------------


def _subfolder(backbone: Backbone, n_views: int, flip: bool) -> str:
    """A folder name for all that features depend on beside their image."""
    settings = {
        "format": FORMAT,
        "backbone": backbone.name,
        "version": backbone.version,
        "side": backbone.side,
        "mean": backbone.mean,
        "scale": backbone.scale,
        "n_views": n_views,
        "flip": flip,
    }
    if backbone.first_stage is not None:
        settings["first_stage"] = backbone.first_stage
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=8)
    readable = re.sub(r"[^\w.-]+", "-", backbone.name)
    return f"{readable}-{backbone.side}px-{n_views}views-{digest.hexdigest()}"


def rounded(features: np.ndarray) -> np.ndarray:
    """Features as the cache gives them back, so that it makes no difference."""
    return np.clip(features, -LARGEST, LARGEST).astype(np.float16).astype(np.float32)


def _read_cached(folder: Path, wanted: Wanted, features: np.ndarray) -> np.ndarray:
    """Fill in the features that lie in ``folder``; return which rows of ``wanted`` have theirs."""
    rows = {wanted.keys[row].tobytes(): int(row) for row in np.unique(wanted.first)}
    is_done = np.zeros(len(wanted.keys), dtype=bool)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            check_regular(path)
            found = _read_shard(path, rows, features.shape[1:])
        except Exception as error:  # any: a file in the cache may be anybody's
            _warn(
                f"{path} is damaged or holds something else ({reason(error)}); "
                "features are computed again where they were in it: delete it"
            )
            continue
        for row, vectors in found:
            features[row] = vectors
            is_done[row] = True
    return is_done


def _read_shard(
    path: Path, rows: dict[bytes, int], shape: tuple[int, ...]
) -> list[tuple[int, np.ndarray]]:
    """Row and features of each image in the shard that ``rows`` asks for, and asks no more."""
    with safe_open(path, framework="numpy") as shard:
        keys = shard.get_tensor("keys")
        if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != KEY_BYTES:
            raise ValueError(f"keys are {keys.dtype} {keys.shape}")
        held = [(place, key.tobytes()) for place, key in enumerate(keys) if key.tobytes() in rows]
        if not held:
            return []
        features = shard.get_tensor("features")
    if features.dtype != np.float16 or features.shape != (len(keys), *shape):
        raise ValueError(f"features are {features.dtype} {features.shape}")
    if path.name != _shard_name(keys, features):
        raise ValueError("its name is not the digest of what it holds")
    if not np.isfinite(features).all():
        raise ValueError("it holds values that are not finite")
    return [(rows.pop(key), features[place]) for place, key in held]


def _write_shard(folder: Path, keys: np.ndarray, features: np.ndarray) -> bool:
    """Add a shard; where that fails, warn once and go on without."""
    halves = features.astype(np.float16)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Runs that share a cache may write the same shard at the same time.
        with lock(folder / LOCK, f"{folder} is busy", seconds=LONGEST_WAIT):
            content = save({"keys": keys, "features": halves})
            write_whole(folder / _shard_name(keys, halves), content)
    except (OSError, OutputError) as error:
        _warn(
            f"features cannot be cached in {folder} ({reason(error)}), so the next run "
            "computes them again; set S2OSC_CACHE to a folder with room where you may write"
        )
        return False
    return True


def _shard_name(keys: np.ndarray, features: np.ndarray) -> str:
    digest = hashlib.blake2b(keys.tobytes() + features.tobytes(), digest_size=16)
    return digest.hexdigest() + SUFFIX


def _warn(message: str) -> None:
    warnings.warn(message, S2OSCWarning, stacklevel=5)
