"""Every experiment by its name: the paper's comparisons, our own pools, and streams."""

from dataclasses import replace

from s2osc.bench.experiments.experiment import SIZES, Experiment, Size, at_most
from s2osc.bench.experiments.grid import DATA, paired_pools_of, pools_of
from s2osc.bench.experiments.streams import STREAMS
from s2osc.bench.methods import ABLATED, COMPARED, HEADS_OF_RECORDS, METHODS, OURS, SMALL
from s2osc.bench.tasks.audit import AuditPool, AuditTask, PairedPool
from s2osc.bench.tasks.groups import GroupsTask
from s2osc.bench.tasks.pool import PoolTask
from s2osc.bench.tasks.task import COMPARED_SIDE
from s2osc.data.splits import RELEASED_SPLIT, SINGLE_UNKNOWN, Protocol
from s2osc.errors import SettingsError
from s2osc.nets.backbones import FEW_SIDE
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import ABLATIONS, FAST, HEADS, PLAIN, TUNED
from s2osc.settings import NamedSettings, change
from s2osc.types import Method

# The paper's experiments with every method, at a size one can afford

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


_TABLE1 = Experiment(
    "One unknown class: half of the classes known",
    SINGLE_UNKNOWN,
    _pick(COMPARED),
    data=("mnist", "fashion_mnist", "cifar10", "cifar10-features", "svhn", "cinic10_sample"),
    task=PoolTask(side=COMPARED_SIDE),
    layout="matrix",
    table="one",
    sizes=SIZES,
)
_SEVERAL = replace(
    _TABLE1,
    title="Three unknown classes at once: half of the classes known",
    protocol=Protocol(n_unknown=3),
    data=("mnist", "fashion_mnist", "cifar10-features"),
    headlines=("class_f1",),
    table="three",
)
_OF_TWO_SETS = replace(_TABLE1, data=("mnist", "fashion_mnist"), table=None)

COMPARISONS = {
    "table1": _TABLE1,
    "table1-released": replace(
        _OF_TWO_SETS,
        title="The released split: classes 0-4 known, 5 unknown",
        protocol=replace(RELEASED_SPLIT, sizes=None),
        table="one",
        sizes=SIZES | {"paper": Size(at_most((4_000, 2_000, 6_000), 0), "paper", "heads")},
    ),
    "several-3": _SEVERAL,
    "several-5": replace(
        _SEVERAL,
        title="Five unknown classes at once: half of the classes known",
        protocol=Protocol(n_unknown=5),
        table="five",
    ),
    "large": replace(
        _SEVERAL,
        title="Many classes: 20 of the 30 of CIFAR-30 known, the other ten unknown",
        protocol=Protocol(n_known=20, n_unknown=10),
        data=("cifar30-features", "cifar30"),
        table="large",
        sizes=SIZES | {"cpu": Size(at_most((300, 120, 1_500), 60), "plain", "heads")},
    ),
    "few-labels": replace(
        _TABLE1,
        title="Few labels: half of the classes known, one unknown",
        data=("cifar10-features", "cinic10_sample-features", "segment", "pendigits"),
        task=PoolTask(side=FEW_SIDE),
        table=None,
        sizes=dict.fromkeys(("paper", "cpu"), Size(at_most((60, 50, 150), 0), "heads", "heads"))
        | {"smoke": SIZES["smoke"]},
    ),
    "k-sweep": replace(
        _OF_TWO_SETS,
        title="The number K of distinct unknown items",
        methods=_k_sweep(),
        sizes=SIZES | {"cpu": Size(at_most((2_000, 1_000, 3_000), 200), "plain", "heads")},
    ),
    "ablation": replace(
        _OF_TWO_SETS,
        title="The paper's ablations, and ours",
        methods=_pick((*ABLATED, OURS)),
        headlines=("f1", "f_out"),
        table="ablation",
    ),
    "runtime": replace(
        _OF_TWO_SETS,
        title="Seconds of a run, f included, each method by itself",
        data=("mnist", "cifar10-features"),
        keeps_networks=False,
    ),
    "embeddings": replace(
        _OF_TWO_SETS,
        title="What methods see: known and unknown items in two dimensions",
        methods=_pick(SHOWN),
        data=("mnist",),
        pictures=("embedding",),
    ),
    "case-study": replace(
        _OF_TWO_SETS,
        title="Items the filter took for distinct unknowns, and unknown ones it did not; "
        "counterfactuals",
        methods=_pick(("s2osc-paper", "s2osc", "cfo")),
        pictures=("gallery", "counterfactuals"),
    ),
}


# Our own: what seeds, presets and choices are worth, on pools of every kind

SEEDED = {
    "f on known": "teacher_known_accuracy",
    "AUROC of f": "teacher_auroc",
    "K": "k",
    "purity of D_out": "purity_of_d_out",
    "false alarms": "false_alarms",
    "accuracy": "accuracy",
    "weighted F1": "f1",
    "F_out": "f_out",
    "groups": "n_groups",
    "group accuracy": "group_accuracy",
}
NOTHING = {
    "f on known": "teacher_known_accuracy",
    "accuracy": "accuracy",
    "called unknown": "false_alarms",
    "says nothing is unknown": "nothing_unknown",
}
FOUND = {"says nothing is unknown": "nothing_unknown", "p-value": "p_value"}
COVERED = {
    "false alarms": "false_alarms",
    "known accuracy": "known_accuracy",
    "F_out": "f_out",
    "false alarms covered": "false_alarm_covered",
    "known accuracy covered": "known_accuracy_covered",
    "says nothing is unknown": "nothing_unknown",
    "warns of a shift": "shift_found",
}


def _variants() -> dict[str, S2OSCMethod]:
    """The paper's method, each choice of ours changed to its reading, and its ablations."""
    choices: dict[str, NamedSettings] = {
        "g answers alone": {"student.vote": False},
        "gate on D_out as printed": {"student.gate_unknown": True},
        "labelled items plain": {"student.augment_labelled": False},
        "f on plain items": {"teacher.augment": 0.0},
        "w standardised": {"filtering.scale": "standardised"},
        "w = entropy": {"filtering.distance_weight": 0.0},
        "g binary": {"student.unknown": "many"},
    }
    changed = {name: change(PLAIN, changes) for name, changes in choices.items()}
    ablated = {f"S2OSC-{letter}": ablate(PLAIN) for letter, ablate in ABLATIONS.items()}
    return {"plain": PLAIN, **changed, **ablated}


def _improvements() -> dict[str, S2OSCMethod]:
    """From the paper's method to ours, one step after the other; then ours without one of them."""
    steps: dict[str, NamedSettings] = {
        "seeds watch": {"seeds.share": 0.15},
        "+ threshold of the seeds": {"decision.rule": "seeds"},
        "+ filter of the seeds, K auto": {"filtering.by": "seeds"},
        "+ all known items": {"student.known_items": "all"},
        "+ seeds teach g": {"student.seed_weight": 0.5},
        "+ small maps of g, more steps": {
            "student.network.grey_map": FAST.student.network.grey_map,
            "student.training.epochs": FAST.student.training.epochs,
            "student.training.min_steps": FAST.student.training.min_steps,
        },
        "+ fewer channels of f, more steps (fast)": {
            "teacher.network.widths": FAST.teacher.network.widths,
            "teacher.training.epochs": FAST.teacher.training.epochs,
        },
    }
    methods, changes = {"plain": PLAIN}, NamedSettings()
    for name, step in steps.items():
        changes |= step
        methods[name] = change(PLAIN, changes)
    without: dict[str, NamedSettings] = {
        "fast, filter=paper": {"filtering.by": "paper"},
        "fast, argmax": {"decision.rule": "argmax"},
        "fast, without pseudo-labels": {"student.lambda_u": 0.0},
        "fast, g names the known alone": {"student.vote": False},
        "fast, g binary": {"student.unknown": "many"},
        "fast, all the limit allows": {"decision.aim": "recall"},
    }
    return methods | {name: change(FAST, changes) for name, changes in without.items()}


HALF = (2_000, 1_500, 4_500)
HALF_IN_WORDS = "2,000 labelled items and 1,500 pool items of each known class"
SMALL_POOL = Protocol(
    n_unknown=5,
    sizes=(300, 100, 1_170),
    unknown_shares=(0.0, 0.05, 0.15, 0.3, 0.5, 0.7),
)

POOLS = {
    "released": Experiment(
        "Released split: classes 0-4 known (4,000 items of each for training, 2,000 in the pool), "
        "class 5 unknown (6,000 in the pool)",
        RELEASED_SPLIT,
        {"plain": PLAIN},
    ),
    "single": Experiment(
        "Random partitions: half of the classes known, one unknown, 33 % of the known data and "
        "all of the unknown class in the pool",
        SINGLE_UNKNOWN,
        {"plain": PLAIN, "fast": FAST},
    ),
    "variants": Experiment(
        "Choices and ablations: random partitions with half of the classes known, one unknown; "
        "2,000 training items and 1,000 pool items of each known class, 3,000 unknown ones",
        Protocol(sizes=(2_000, 1_000, 3_000)),
        _variants(),
        data=("fashion_mnist",),
    ),
    "none": Experiment(
        f"Nothing unknown: half of the classes known, no other in the pool; {HALF_IN_WORDS}",
        Protocol(sizes=HALF, unknown_shares=(0.0,)),
        {"fast": FAST},
        NOTHING,
    ),
    "rare": Experiment(
        f"2 % of the pool unknown: half of the classes known, one unknown; {HALF_IN_WORDS}",
        Protocol(sizes=HALF, unknown_shares=(0.02,)),
        {"fast": FAST},
        SEEDED,
    ),
    "rarest": Experiment(
        f"0.5 % of the pool unknown: half of the classes known, one unknown; {HALF_IN_WORDS}",
        Protocol(sizes=HALF, unknown_shares=(0.005,)),
        {"fast": FAST},
        SEEDED | FOUND,
    ),
    "shirt": Experiment(
        "Hard: T-shirt, pullover, coat, sandal, sneaker known, shirt unknown; "
        f"{HALF_IN_WORDS}, 4,500 unknown ones",
        Protocol((0, 2, 4, 5, 7), (6,), sizes=HALF),
        {"plain": PLAIN, "fast": FAST},
        SEEDED,
        ("fashion_mnist",),
    ),
    "t-shirt": Experiment(
        "Hard: pullover, coat, shirt, sneaker, ankle boot known, T-shirt unknown; "
        f"{HALF_IN_WORDS}, 4,500 unknown ones",
        Protocol((2, 4, 6, 7, 9), (0,), sizes=HALF),
        {"plain": PLAIN, "fast": FAST},
        SEEDED,
        ("fashion_mnist",),
    ),
    "five": Experiment(
        f"Five unknown classes at once: the other five known; {HALF_IN_WORDS}, 4,500 unknown ones",
        Protocol(n_unknown=5, sizes=HALF),
        {"fast": FAST},
        SEEDED,
        ("mnist",),
    ),
    "features": Experiment(
        "Frozen features of EfficientNet-Lite0 at 96 px: half of the classes known, one unknown; "
        "1,500 labelled items and 1,000 pool items of each known class, 3,000 unknown ones",
        Protocol(sizes=(1_500, 1_000, 3_000)),
        {"heads": HEADS_OF_RECORDS},
        SEEDED,
        ("cifar10",),
        "efficientnet-lite0",
        task=PoolTask(side=COMPARED_SIDE),
    ),
    "few-photos": Experiment(
        "Few small photos as users get them, features of EfficientNet-Lite0 at 224 px: half of the "
        "classes known, one unknown; all there is",
        Protocol(sizes=(1_500, 1_000, 3_000), shrink=True),
        {"auto": HEADS},
        SEEDED,
        ("cinic10_sample",),
        "efficientnet-lite0",
        task=PoolTask(side=FEW_SIDE),
    ),
    "tuned": Experiment(
        "EfficientNet-Lite0 at 96 px, its upper stages trained: half of the classes known, one "
        "unknown; 1,500 labelled items and 1,000 pool items of each known class, 3,000 unknown "
        "ones, or what there is",
        Protocol(sizes=(1_500, 1_000, 3_000), shrink=True),
        {"tuned": TUNED},
        SEEDED,
        ("cifar10", "svhn", "cinic10_sample"),
        "efficientnet-lite0",
        task=PoolTask(first_stage=TUNED.teacher.network.first_stage),
    ),
    "coverage": Experiment(
        "Small pools, 0 to 70 % unknown: do the 95 % intervals of the audit cover the truth? Five "
        "classes known (300 labelled items and 100 pool items of each), five unknown",
        SMALL_POOL,
        {"small": SMALL},
        COVERED,
        ("mnist5k", "fashion_mnist"),
    ),
    "shift": Experiment(
        "The same, with one known class absent from the pool and one five times as frequent",
        replace(SMALL_POOL, shifted=True),
        {"small": SMALL},
        COVERED,
        ("mnist5k", "fashion_mnist"),
    ),
    "improvements": Experiment(
        "From the paper's method to ours, and ours without one part: half of the classes known, "
        "one unknown; 2,000 training items and 1,000 pool items of each known class, 3,000 "
        "unknown ones",
        Protocol(sizes=(2_000, 1_000, 3_000)),
        _improvements(),
        SEEDED,
        ("fashion_mnist",),
    ),
}


# Many small pools, drawn so that all that is wrong with real ones comes together

# Images get the networks of `small`, vectors those of `heads`: f is as right as the few labels
# allow, and a pool takes seconds. Groups are not judged, so they are not looked for.

_AUDIT = Experiment(
    "Pools of 500 items from the same source or another, five classes known: is what the audit "
    "states true?",
    AuditPool(),
    {OURS: change(FAST, {"clusters.n_groups": 1})},
    data=tuple(DATA),
    task=AuditTask(),
    layout="grid",
    pools=pools_of,
    networks={name: data.networks for name, data in DATA.items()},
    keeps_networks=False,
)
GRIDS = {
    "audit": _AUDIT,
    "sources": replace(
        _AUDIT,
        title="The same pools from the source of the labelled items and from others: 300 labelled "
        "items of each of five known classes, 500 items in the pool, of none or of 40 % of which "
        "the class is unknown",
        protocol=PairedPool(),
        methods={**_AUDIT.methods, **_pick(("s2osc-paper",))},
        data=tuple(name for name, data in DATA.items() if data.smallest_class > 500),
        layout="sources",
        pools=paired_pools_of,
    ),
}


# The groups of a whole run: how many, and which item in which

GROUPED = {
    "unknown": "n_true",
    "groups": "n_groups",
    "within one": "within_one",
    "found": "unknown_recall",
    "NMI": "nmi_found",
    "F1, each class": "class_f1",
    "by silhouette": "silhouette_n_groups",
    "within one by it": "silhouette_within_one",
    "its NMI": "silhouette_nmi_found",
    "by GCD's way": "gcd_n_groups",
    "GCD's NMI": "gcd_nmi_found",
    "by HDBSCAN": "hdbscan_n_groups",
    "k-means, told: NMI": "told_nmi_found",
}
N_GROUPED = (1, 2, 3, 5, 10)
GROUPS = {
    f"groups-{n}": Experiment(
        f"The groups of a whole run, {n} unknown class{'es' if n > 1 else ''}: how many, and which "
        "item in which; beside ours, other ways on the same items",
        Protocol(n_known=10 if n == 10 else None, n_unknown=n, sizes=(200, 100, 600), shrink=True),
        _pick((OURS, "dtc")),
        GROUPED,
        data=("cifar30-features", "stackoverflow")
        if n == 10
        else (
            "cifar10-features",
            "cifar30-features",
            "mnist",
            "fashion_mnist",
            "stackoverflow",
            "pendigits",
            *(("segment",) if n < 5 else ()),  # it has seven classes
        ),
        task=GroupsTask(),
        networks=dict.fromkeys(("mnist", "fashion_mnist"), "quick")
        | dict.fromkeys(
            ("cifar10-features", "cifar30-features", "stackoverflow", "pendigits", "segment"),
            "heads",
        ),
    )
    for n in N_GROUPED
}


EXPERIMENTS: dict[str, Experiment] = {**COMPARISONS, **POOLS, **GRIDS, **GROUPS, **STREAMS}

TOGETHER = {"several": ("several-3", "several-5"), "groups": tuple(GROUPS)}
"""Names that stand for more than one experiment."""


def experiments_named(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or those it stands for."""
    names = TOGETHER.get(name, (name,))
    if not set(names) <= EXPERIMENTS.keys():
        there_are = " or ".join([*EXPERIMENTS, *TOGETHER])
        raise SettingsError(f"there is no experiment {name!r}; give {there_are}")
    return {each: EXPERIMENTS[each] for each in names}
