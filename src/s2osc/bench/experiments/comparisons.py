"""The paper's experiments with every method: its tables, its figures, at a size one can afford."""

from dataclasses import replace

from s2osc.bench.experiments.experiment import SIZES, Experiment, Size
from s2osc.bench.methods import ABLATED, COMPARED, METHODS, OURS
from s2osc.data.splits import RELEASED_SPLIT, SINGLE_UNKNOWN, Protocol
from s2osc.settings import change
from s2osc.types import Method

K_SWEEP = (50, 300, 1000, 2000)
SHOWN = ("isolation-forest", "odin", "cpe", "dtc", "eulac", "s2osc-paper", "s2osc")
"""Methods of experiments that are costly or drawn in panels."""


def _pick(names: tuple[str, ...]) -> dict[str, Method]:
    return {name: METHODS[name] for name in names}


def _k_sweep() -> dict[str, Method]:
    """The paper's form with each K, and ours, which chooses K itself."""
    fixed = {
        f"s2osc-paper-k{k}": change(METHODS["s2osc-paper"], {"filtering.k": k}) for k in K_SWEEP
    }
    return fixed | _pick((OURS,))


COMPARISONS = {
    "table1": Experiment(
        "One unknown class: half of the classes known",
        SINGLE_UNKNOWN,
        _pick(COMPARED),
        data=("mnist", "fashion_mnist", "cifar10", "cifar10-features", "svhn", "cinic10_sample"),
        layout="matrix",
        table="one",
        sizes=SIZES,
    ),
    "table1-released": Experiment(
        "The released split: classes 0-4 known, 5 unknown",
        replace(RELEASED_SPLIT, sizes=None),
        _pick(COMPARED),
        layout="matrix",
        table="one",
        sizes=SIZES | {"paper": Size((4_000, 2_000, 6_000), 0, "paper", "heads")},
    ),
    "several-3": Experiment(
        "Three unknown classes at once: half of the classes known",
        Protocol(n_unknown=3),
        _pick(COMPARED),
        data=("mnist", "fashion_mnist", "cifar10-features"),
        layout="matrix",
        headlines=("class_f1",),
        table="three",
        sizes=SIZES,
    ),
    "several-5": Experiment(
        "Five unknown classes at once: half of the classes known",
        Protocol(n_unknown=5),
        _pick(COMPARED),
        data=("mnist", "fashion_mnist", "cifar10-features"),
        layout="matrix",
        headlines=("class_f1",),
        table="five",
        sizes=SIZES,
    ),
    "large": Experiment(
        "Many classes: 20 of the 30 of CIFAR-30 known, the other ten unknown",
        Protocol(n_known=20, n_unknown=10),
        _pick(COMPARED),
        data=("cifar30-features", "cifar30"),
        layout="matrix",
        headlines=("class_f1",),
        table="large",
        sizes=SIZES | {"cpu": Size((300, 120, 1_500), 60, "plain", "heads")},
    ),
    "k-sweep": Experiment(
        "The number K of distinct unknown items",
        SINGLE_UNKNOWN,
        _k_sweep(),
        layout="matrix",
        sizes=SIZES | {"cpu": Size((2_000, 1_000, 3_000), 200, "plain", "heads")},
    ),
    "ablation": Experiment(
        "The paper's ablations, and ours",
        SINGLE_UNKNOWN,
        _pick((*ABLATED, OURS)),
        layout="matrix",
        headlines=("f1", "f_out"),
        table="ablation",
        sizes=SIZES,
    ),
    "runtime": Experiment(
        "Seconds of a run, f included, each method by itself",
        SINGLE_UNKNOWN,
        _pick(COMPARED),
        data=("mnist", "cifar10-features"),
        layout="matrix",
        sizes=SIZES,
        keeps_networks=False,
    ),
    "embeddings": Experiment(
        "What methods see: known and unknown items in two dimensions",
        SINGLE_UNKNOWN,
        _pick(SHOWN),
        data=("mnist",),
        layout="matrix",
        sizes=SIZES,
        pictures=("embedding",),
    ),
    "case-study": Experiment(
        "Items the filter took for distinct unknowns, and unknown ones it did not; counterfactuals",
        SINGLE_UNKNOWN,
        _pick(("s2osc-paper", "s2osc", "cfo")),
        data=("mnist", "fashion_mnist"),
        layout="matrix",
        sizes=SIZES,
        pictures=("gallery", "counterfactuals"),
    ),
}
