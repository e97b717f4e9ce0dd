"""Photos as networks with pretrained weights take them: an array of records, one for each item.

``features`` are those of the whole pretrained network as it is, by which filter and groups compare
items. ``maps`` are what its lower stages make of the item, where the stages that are trained begin.
Both have a row for the item itself, then one for each weak view. Records are picked and joined as
the rows of any array are.
"""

import numpy as np

FEATURES, MAPS = "features", "maps"


def photo_items(stacked: np.ndarray, n_features: int) -> np.ndarray:
    """(n,) records of rows ``(n, views, D)`` that hold features, then maps.

    Maps are rounded to 16 bits, as the cache of features is.
    """
    n, n_views, n_columns = stacked.shape
    items = np.empty(n, photo_type(n_views, n_features, n_columns - n_features))
    items[FEATURES] = stacked[:, :, :n_features]
    items[MAPS] = stacked[:, :, n_features:]
    return items


def photo_type(n_views: int, n_features: int, n_map: int) -> np.dtype:
    """The type of a record.

    >>> photo_type(3, 1280, 2880).names
    ('features', 'maps')
    """
    fields = [(FEATURES, np.float32, (n_views, n_features)), (MAPS, np.float16, (n_views, n_map))]
    return np.dtype(fields)


def is_photos(inputs: np.ndarray) -> bool:
    """Whether the items are such records."""
    return inputs.dtype.names == (FEATURES, MAPS)


def features_of(inputs: np.ndarray) -> np.ndarray:
    """What items are compared by: the features of photos, of others the items themselves."""
    return inputs[FEATURES] if is_photos(inputs) else inputs


def with_features(inputs: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The same items with other features."""
    if not is_photos(inputs):
        return features
    changed = inputs.copy()
    changed[FEATURES] = features
    return changed


def maps_of(photos: np.ndarray) -> np.ndarray:
    """(n, views, channels x places) float16."""
    return photos[MAPS]
