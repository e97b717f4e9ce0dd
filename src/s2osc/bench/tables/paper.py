"""The paper's own figures, to stand beside ours: ``PAPER[table][method, data set][metric]``.

    one              one unknown class (main text; F_out from the supplement)
    three, five      several unknown classes: F_out alone, the other figures are only drawn
    large            CIFAR-30, ten of its classes unknown
    ablation         variants of S2OSC, one unknown class
    stream           a stream with one new class per window, and what is forgotten
    stream_several   a stream with several new classes per window, CIFAR-10

How the columns were read:

- As headed, but for precision and recall of ``one`` and ``stream``: these stand in pairs (P, R of
  one data set, then of the next), whatever their header says. The second of each pair is the
  accuracy again, as weighted recall must be.
- The SVHN pair of ``one`` repeats accuracy and F1, and precision and recall of "S2OSC" in
  ``ablation`` are cells of ``one`` in other places; these are left out. What is merely odd stands
  as printed: the Fashion-MNIST F1 in ``one`` repeats precision for most methods, recall of S2OSC-U
  has MNIST and CIFAR-10 exchanged, CPE repeats DTC in most rows of ``stream_several``.
- The K sweep and the other figures of several unknown classes are drawn, not printed. Tables that
  are commented out in the source (F_in, F_out of all five data sets, a large-scale stream) are no
  part of the paper.
- Isolation forest has no forgetting (N/A).
- In ``large`` and ``stream_several`` each unknown class counts for itself, groups being matched to
  them: Isolation Forest's accuracy of .006 beside its F_out of .649 can mean nothing else. So they
  stand beside our ``class_accuracy``, and beside nothing where unknown classes count as one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

Figures = Mapping[tuple[str, str], Mapping[str, float]]

FIVE_SETS = ("fashion_mnist", "cifar10", "svhn", "mnist", "cinic10")
THREE_SETS = ("mnist", "cifar10", "svhn")

_ONE_ACCURACY_F1 = """
isolation-forest  .554 .243 .198 .632 .240  .553 .243 .197 .625 .240
one-class-svm     .474 .260 .195 .537 .243  .671 .223 .102 .520 .206
lacu-svm          .394 .325 .193 .695 .303  .409 .326 .091 .681 .268
senc-mas          .420 .215 .184 .358 .230  .489 .171 .124 .302 .166
odin              .563 .426 .601 .778 .329  .854 .380 .584 .767 .243
cfo               .639 .502 .663 .514 .389  .720 .514 .656 .513 .359
cpe               .628 .438 .645 .961 .246  .605 .353 .791 .960 .270
dtc               .576 .363 .534 .741 .388  .665 .495 .606 .717 .452
s2osc             .972 .847 .898 .985 .785  .972 .854 .901 .985 .787
"""
_ONE_PAIRS = """
isolation-forest  .553 .554  .252 .243  - -  .657 .632  .245 .240
one-class-svm     .671 .474  .286 .260  - -  .616 .537  .274 .243
lacu-svm          .409 .394  .331 .325  - -  .676 .695  .363 .303
senc-mas          .489 .420  .253 .215  - -  .448 .358  .211 .230
odin              .854 .563  .520 .426  - -  .878 .778  .554 .329
cfo               .720 .639  .579 .502  - -  .598 .514  .436 .389
cpe               .605 .698  .336 .408  - -  .955 .961  .302 .316
dtc               .665 .576  .435 .463  - -  .699 .681  .428 .388
s2osc             .972 .972  .888 .847  - -  .986 .985  .799 .785
"""
_ONE_F_OUT = """
isolation-forest  .065 .251 .230  .010 .032 .021
one-class-svm     .461 .279 .300  .035 .016 .028
lacu-svm          .223 .190 .251  .026 .009 .018
senc-mas          .005 .110 .007  .000 .003 0
odin              .390 .031 .219  .085 0    .010
cfo               .278 .275 .285  .013 .017 .012
cpe               .923 .383 .563  .015 .022 .053
dtc               .249 .252 .142  .041 .028 .016
s2osc             .987 .853 .932  .019 .083 .032
"""
_THREE_F_OUT = """
isolation-forest  .292 .139 .224  .047 .041 .037
one-class-svm     .494 .525 .519  .093 .057 .060
lacu-svm          .381 .449 .465  .058 .026 .102
senc-mas          .530 .554 .472  .002 .040 .075
odin              .006 .006 .006  0    0    0
cfo               .296 .442 .452  .110 .036 .096
cpe               .424 .385 .338  .055 .026 .094
dtc               .074 .241 .309  .009 .176 .084
s2osc             .629 .632 .666  .013 .024 .117
"""
_FIVE_F_OUT = """
isolation-forest  .407 .224 .219  .060 .031 .014
one-class-svm     .488 .479 .464  .057 .067 .044
lacu-svm          .514 .604 .594  .067 .036 .019
senc-mas          .690 .689 .706  .004 .003 .018
odin              .130 .130 .130  0    0    0
cfo               .543 .556 .596  .002 .010 .072
cpe               .619 .557 .577  .040 .050 .119
dtc               .553 .593 .756  .131 .002 .055
s2osc             .974 .858 .830  .001 .028 .029
"""
_LARGE = """
accuracy   .006 .009 .008 .007 .163 .147 .176 .181 .302
precision  .709 .703 .195 .179 .340 .436 .245 .248 .791
recall     .006 .009 .008 .007 .163 .147 .176 .181 .302
f1         .006 .008 .008 .007 .147 .125 .165 .168 .165
f_out      .649 .614 .691 .706 .917 .898 .917 .917 .940
"""
_ABLATION_ACCURACY_F1 = """
s2osc-s   .834 .812 .748  .792 .771 .666
s2osc-lm  .793 .675 .589  .754 .608 .505
s2osc-fn  .891 .817 .880  .846 .777 .834
s2osc-u   .886 .786 .812  .853 .813 .833
s2osc     .985 .847 .898  .985 .854 .901
"""
_ABLATION_PRECISION_RECALL = """
s2osc-s   .758 .736 .602  .834 .812 .748
s2osc-lm  .727 .561 .465  .793 .675 .589
s2osc-fn  .807 .746 .795  .891 .817 .880
s2osc-u   .765 .758 .876  .786 .886 .812
"""
_STREAM_ACCURACY_F1 = """
isolation-forest  .533 .221 .170 .606 .220  .489 .217 .162 .595 .217
one-class-svm     .404 .218 .167 .471 .205  .409 .169 .085 .476 .156
lacu-svm          .332 .199 .149 .171 .188  .267 .137 .052 .088 .114
senc-mas          .341 .197 .156 .296 .197  .264 .145 .100 .251 .138
odin              .780 .334 .625 .853 .276  .767 .284 .593 .850 .206
cfo               .659 .306 .485 .745 .291  .635 .304 .472 .722 .283
cpe               .618 .368 .695 .961 .286  .599 .343 .701 .960 .260
dtc               .586 .393 .514 .711 .348  .609 .445 .566 .717 .382
i-s2osc           .818 .660 .771 .926 .567  .774 .609 .732 .913 .517
"""
_STREAM_PAIRS = """
isolation-forest  .498 .503  .226 .221  .166 .170  .621 .607  .225 .221
one-class-svm     .597 .405  .216 .219  .187 .167  .672 .472  .210 .205
lacu-svm          .262 .332  .133 .200  .043 .150  .266 .172  .143 .188
senc-mas          .330 .342  .207 .198  .210 .157  .390 .297  .197 .198
odin              .858 .781  .456 .334  .672 .626  .920 .853  .372 .276
cfo               .634 .659  .307 .306  .477 .486  .803 .745  .285 .291
cpe               .666 .619  .427 .368  .762 .696  .965 .961  .332 .286
dtc               .666 .586  .536 .394  .657 .515  .800 .711  .469 .349
i-s2osc           .759 .818  .597 .661  .718 .771  .893 .922  .509 .568
"""
_FORGETTING = """
fashion_mnist  - .139 .121 .127 .107 .047 .032 .055 .029
cifar10        - .202 .127 .172 .132 .128 .118 .120 .117
svhn           - .243 .330 .249 .168 .130 .124 .159 .123
mnist          - .141 .080 .061 .049 .040 .033 .044 .037
cinic10        - .224 .227 .278 .170 .190 .147 .175 .138
"""
_STREAM_SEVERAL = """
accuracy    .106 .186 .175 .220 .333 .315 .314 .356 .444
precision   .257 .296 .281 .381 .473 .508 .471 .471 .606
recall      .106 .186 .175 .220 .333 .315 .356 .356 .442
f1          .132 .205 .194 .134 .271 .259 .399 .399 .487
f_out       .230 .406 .404 .685 .796 .736 .233 .233 .802
forgetting  -    .625 .633 .678 .606 .390 .374 .374 .305
"""

Cell = tuple[tuple[str, str], str, float]  # method and data set, metric, value
Column = TypeVar("Column")


def _cells(block: str, columns: Iterable[Column]) -> Iterator[tuple[str, Column, float]]:
    """The first word of the line, the column and the value of each cell that is no dash."""
    heads = list(columns)
    for line in block.strip().splitlines():
        first, *cells = line.split()
        for head, cell in zip(heads, cells, strict=True):
            if cell != "-":
                yield first, head, float(cell)


METHODS = tuple(line.split()[0] for line in _ONE_ACCURACY_F1.strip().splitlines())
STREAM_METHODS = (*METHODS[:-1], "i-s2osc")


def _headed(block: str, datasets: Sequence[str], metrics: tuple[str, str]) -> list[Cell]:
    """A row per method: one metric on every data set, then the other."""
    columns = [(dataset, metric) for metric in metrics for dataset in datasets]
    return [((method, data), metric, x) for method, (data, metric), x in _cells(block, columns)]


def _paired(block: str, datasets: Sequence[str]) -> list[Cell]:
    """A row per method: precision and recall of one data set, then of the next."""
    columns = [(dataset, metric) for dataset in datasets for metric in ("precision", "recall")]
    return [((method, data), metric, x) for method, (data, metric), x in _cells(block, columns)]


def _by_metric(block: str, dataset: str, methods: Sequence[str]) -> list[Cell]:
    """A row per metric, a column per method."""
    return [((method, dataset), metric, x) for metric, method, x in _cells(block, methods)]


def _by_dataset(block: str, metric: str, methods: Sequence[str]) -> list[Cell]:
    """A row per data set, a column per method."""
    return [((method, dataset), metric, x) for dataset, method, x in _cells(block, methods)]


def _gather(*parts: list[Cell]) -> Figures:
    figures: dict[tuple[str, str], dict[str, float]] = {}
    for key, metric, value in chain(*parts):
        figures.setdefault(key, {})[metric] = value
    return figures


_ACCURACY_F1 = ("accuracy", "f1")
_F_OUT = ("f_out", "f_out_deviation")
PAPER: Mapping[str, Figures] = {
    "one": _gather(
        _headed(_ONE_ACCURACY_F1, FIVE_SETS, _ACCURACY_F1),
        _paired(_ONE_PAIRS, FIVE_SETS),
        _headed(_ONE_F_OUT, THREE_SETS, _F_OUT),
    ),
    "three": _gather(_headed(_THREE_F_OUT, THREE_SETS, _F_OUT)),
    "five": _gather(_headed(_FIVE_F_OUT, THREE_SETS, _F_OUT)),
    "large": _gather(_by_metric(_LARGE, "cifar30", METHODS)),
    "ablation": _gather(
        _headed(_ABLATION_ACCURACY_F1, THREE_SETS, _ACCURACY_F1),
        _headed(_ABLATION_PRECISION_RECALL, THREE_SETS, ("precision", "recall")),
    ),
    "stream": _gather(
        _headed(_STREAM_ACCURACY_F1, FIVE_SETS, _ACCURACY_F1),
        _paired(_STREAM_PAIRS, FIVE_SETS),
        _by_dataset(_FORGETTING, "forgetting", STREAM_METHODS),
    ),
    "stream_several": _gather(_by_metric(_STREAM_SEVERAL, "cifar10", STREAM_METHODS)),
}
OF_SEVERAL_CLASSES = ("large", "stream_several")
_PER_CLASS = ("accuracy", "precision", "recall", "f1")


def paper_figure(table: str | None, method: str, dataset: str, metric: str) -> float | None:
    """The paper's figure beside ours, or None.

    Features and samples of a data set count as it, and both forms of S2OSC as the paper's.

    >>> paper_figure("one", "s2osc", "cifar10-features", "f1")
    0.854
    >>> paper_figure("stream", "s2osc", "mnist", "forgetting")
    0.037
    >>> paper_figure("three", "s2osc", "mnist", "accuracy")
    >>> paper_figure("large", "s2osc", "cifar30", "class_accuracy")
    0.302
    """
    if table in OF_SEVERAL_CLASSES:
        if metric in _PER_CLASS:
            return None
        metric = metric.removeprefix("class_")
    whole = dataset.removesuffix("-features").removesuffix("_sample")
    name = method.removesuffix("-paper")
    if name == "s2osc" and (table or "").startswith("stream"):
        name = "i-s2osc"
    return PAPER.get(table or "", {}).get((name, whole), {}).get(metric)
