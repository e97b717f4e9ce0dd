"""A fitted estimator beside its model: classes, audit, and the answer for each row of X."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from s2osc.codec import JsonObject, from_plain
from s2osc.errors import ModelError
from s2osc.files import as_json, guarded, read_json, read_whole, write_whole
from s2osc.types import UNSURE

FIT, ROWS = "fit.json", "rows.safetensors"
"""Classes and audit; labels and groups of the rows of X."""
LARGEST_ROWS = 2**33
COPY_AGAIN = "copy the model folder again, or fit and save anew"


@dataclass(frozen=True, eq=False)
class FitFacts:
    """What is known of a fit beside its model."""

    classes: np.ndarray  # the known ones, of the type they had
    has_pool: bool
    audit: JsonObject | None
    feature_names: tuple[str, ...] = ()  # of a data frame

    def write(self, folder: Path) -> None:
        is_text = self.classes.dtype.kind in "UO"
        found = {
            "classes": self.classes.tolist(),
            "dtype": "str" if is_text else self.classes.dtype.name,
            "has_pool": self.has_pool,
            "audit": self.audit,
            "feature_names": list(self.feature_names),
        }
        write_whole(folder / FIT, as_json(found))

    @classmethod
    def read(cls, folder: Path, names: tuple[str, ...]) -> "FitFacts | None":
        """Those in a folder, checked against the classes of its model; None: it has none."""
        path = folder / FIT
        if not path.exists():
            return None
        found = read_json(path, COPY_AGAIN, ModelError)
        with guarded(path, COPY_AGAIN, ModelError):
            dtype = np.dtype(found["dtype"])
            classes = np.array(found["classes"], dtype)
            if dtype.kind not in "biufU" or tuple(map(str, classes)) != names:
                raise ValueError("its classes are not those of the model")
            return cls(
                classes,
                bool(found["has_pool"]),
                found["audit"],
                # Not in those saved by earlier versions.
                from_plain(tuple[str, ...], found.get("feature_names", []), "feature_names"),
            )


@dataclass(frozen=True, eq=False)
class FitRows:
    """The answer for each of the n rows that an estimator was fitted on."""

    labels: np.ndarray  # (n,) a known class, UNKNOWN or UNSURE
    groups: np.ndarray  # (n,) -1: in none
    leaves: np.ndarray  # (n,) of the tree of groups, -1: none
    in_pool: np.ndarray | None  # (n,) bool; None: saved by an earlier version
    p_known: np.ndarray | None  # (n,) None without seeds

    def write(self, folder: Path) -> None:
        arrays = {n: values for n, values in vars(self).items() if values is not None}
        write_whole(folder / ROWS, save_arrays(arrays))

    @classmethod
    def read(cls, folder: Path, n_classes: int) -> "FitRows | None":
        """Those in a folder, of so many known classes, checked; None: it has none."""
        path = folder / ROWS
        if not path.exists():
            return None
        content = read_whole(path, largest=LARGEST_ROWS, error=ModelError)
        with guarded(path, COPY_AGAIN, ModelError):
            found = load_arrays(content)
            labels, in_pool = found["labels"], found.get("in_pool")
            is_odd = labels.min() < UNSURE or labels.max() >= n_classes
            if is_odd or any(len(each) != len(labels) for each in found.values()):
                raise ValueError("its labels and groups do not fit together")
            return cls(
                labels,
                found["groups"],
                found["leaves"],
                None if in_pool is None else in_pool.astype(bool),
                found.get("p_known"),
            )
