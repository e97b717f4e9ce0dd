"""The photos or texts that the items of a stream are features of, found by the features."""

import hashlib
from typing import NamedTuple

import numpy as np

DIGEST = 16


class Originals(NamedTuple):
    """Photos or texts, each found by its features."""

    keys: np.ndarray  # (n, 16) uint8 digests of the features
    items: np.ndarray  # (n, H, W[, 3]) uint8, or (n,) text

    @classmethod
    def of(cls, features: np.ndarray, items: np.ndarray) -> "Originals":
        return cls(_digests(features), items)

    @classmethod
    def restored(cls, keys: np.ndarray, items: np.ndarray) -> "Originals":
        """Of what was written; refused where it does not fit together."""
        if keys.dtype != np.uint8 or keys.shape != (len(items), DIGEST):
            raise ValueError(f"{len(items)} photos or texts have digests of shape {keys.shape}")
        if items.dtype == np.uint8 and items.ndim not in (3, 4):
            raise ValueError(f"photos have the shape {items.shape}")
        return cls(keys, items)

    @property
    def texts(self) -> list[str] | None:
        """None of photos."""
        return None if self.items.dtype == np.uint8 else [str(text) for text in self.items]

    def find(self, features: np.ndarray) -> np.ndarray | None:
        """(m,) what these are features of; None where one of them is not known."""
        rows = self._rows(features)
        return self.items[rows] if (rows >= 0).all() else None

    def only(self, *features: np.ndarray) -> "Originals":
        """Those of these features, each once."""
        rows = np.concatenate([self._rows(some) for some in features])
        rows = np.unique(rows[rows >= 0])
        return Originals(self.keys[rows], self.items[rows])

    def followed_by(self, other: "Originals") -> "Originals":
        return Originals(
            np.concatenate([self.keys, other.keys]), np.concatenate([self.items, other.items])
        )

    def _rows(self, features: np.ndarray) -> np.ndarray:
        """(m,) the row of each, -1 where there is none."""
        row_of = {key.tobytes(): row for row, key in enumerate(self.keys)}
        found = [row_of.get(key.tobytes(), -1) for key in _digests(features)]
        return np.array(found, int)


def _digests(features: np.ndarray) -> np.ndarray:
    """(n, 16) of the bytes of each row."""
    found = [hashlib.blake2b(row.tobytes(), digest_size=DIGEST).digest() for row in features]
    return np.frombuffer(b"".join(found), np.uint8).reshape(len(found), DIGEST)
