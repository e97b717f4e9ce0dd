"""S2OSC as a scikit-learn estimator: a thin face over the pipeline."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from s2osc.codec import JsonObject, to_plain
from s2osc.data.columns import TableEncoder
from s2osc.data.frames import texts_in
from s2osc.data.label_column import (
    check_free,
    check_labels,
    marks_of,
    names_of,
    numbers_of,
    rows_of_pool,
    without_missing,
)
from s2osc.engine.ray_engine import RayEngine
from s2osc.errors import CautionWarning, DataError, ModelError, SettingsError
from s2osc.estimator_files import FitFacts, FitRows
from s2osc.estimator_inputs import (
    AUTO,
    CHECK_SEED,
    as_inputs,
    check_item_shape,
    check_of_rows,
    checked_texts,
    choose_preparation,
    items_to_compare,
    labelled_rows,
    raw_texts,
    require_rows,
    seed_of,
    settings_by_name,
    vectors_of_rows,
    vectors_of_texts,
)
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.check import check_order
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.threshold import number_classes
from s2osc.pipeline.audit.wording import tell
from s2osc.pipeline.grouping.typical import profile_groups
from s2osc.pipeline.large_pool.whole import OverRows, at_once, fit_large_pool
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.model_description import BackboneEntry, EmbeddingEntry, Preparation
from s2osc.pipeline.photo_preparation import describe_photos, prepare_photos
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.pipeline.storage import load_model, save_model
from s2osc.progress import Stopwatch, shown
from s2osc.settings import FIT_ON, require_choice
from s2osc.types import UNKNOWN, UNSURE, Labelled, Predictions


class S2OSC(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """Known class, or unknown and which group, for every item of a pool.

    ``fit(X, y)`` takes labelled items and the pool together: ``y`` is the class of a labelled row
    and ``-1`` for a row of the pool. With string labels a row of the pool is marked by ``""`` (or
    a missing value), and the answer for an unknown item is ``"unknown"``. ``X`` holds images,
    (n, H, W) or (n, H, W, 3) uint8, vectors, (n, D), texts (a list, array or series of strings), or
    is a data frame of numbers and words.

    Parameters
    ----------
    preset : "auto", "fast", "quick", "heads", "tuned", "large", "plain" or "paper"
        Where the hyper-parameters start from; "auto" is "heads" for vectors, "large" for images
        on a GPU, "fast" for images elsewhere. "quick" is "fast" in less time, with a g that starts
        from f. "tuned" trains the upper stages of a pretrained network (extra ``photos``) on
        images. "plain" and "paper" are the paper's method, without seeds.
    seeds : float or "auto"
        Share of the labelled rows that is held back and hidden in the pool, to set the threshold
        and to measure the answer by; "auto" is the preset's.
    false_alarm : float
        At most this share of known items may be called unknown. This, ``guarantee``, ``aim`` and
        ``unsure`` are matters of the seeds: the presets "plain" and "paper" do not use them.
    false_alarm_of : dict or None
        Another limit for known items that are given one class, by its name: ``{"cat": 0.01}``.
    guarantee : "average" or "pool"
        That limit holds on average over pools, or with 95 % confidence in this one.
    aim : "balance" or "recall"
        Within that limit, weigh false alarms against items missed, or find as many unknown items
        as it allows.
    unsure : bool
        Leave close calls open: ``transduction_`` then holds -2 (or "unsure") for them.
    filter : "seeds", "paper" or "auto"
        How the most distinct items are found: by every sign, weighed by the seeds, or by the
        paper's formula; "auto" is the preset's.
    unknown : "one" or "many"
        The student learns the known classes and one unknown one; or, for several unknown
        classes, known against unknown, and the teacher sub-divides the known.
    k : int, "auto" or None
        Items taken as distinct unknowns; "auto" and None are as many as the seeds find pure or,
        without seeds, 300 or as many as a small pool allows.
    n_groups : int, "auto" or None
        Groups among the unknown items; "auto" and None estimate their number.
    embedding : str
        The model that makes vectors of texts: "auto" (all-minilm-l6-v2), "wordllama", or the name
        or folder of one of sentence-transformers.
    keep_columns : sequence of str
        Columns of a data frame that are used although they look like identifiers.
    flip : bool or None
        Whether a mirrored image still means the same; None says so of colour images only.
    fit_on : int
        A larger pool is fitted on a sample of so many of its rows, with more of the strange ones;
        the model answers for all.
    engine : "local" or "ray"
        Where networks are trained and the rows of a pool above ``fit_on`` are answered: here, or by
        workers of Ray (extra ``ray``), which is joined where it runs already.
    settings : mapping or None
        Any other hyper-parameter by name, such as ``{"student.tau": 0.9}``.
    random_state : int, RandomState or None
        None draws a new seed for every fit, and leaves numpy's global state as it was.
    device : "auto", "cpu" or "cuda"
    verbose : bool
        Show progress bars on a terminal.

    Attributes
    ----------
    classes_ : what ``predict`` may answer, sorted: the known classes, and the mark of an unknown
        item where there was a pool. Columns of ``predict_proba`` follow it.
    known_classes_ : the known classes, sorted.
    transduction_ : (n,) label of every row of ``X``, ``-1`` (or "unknown") where it is unknown.
    audit_ : what the seeds say about the answer, as in ``summary.json``: a sentence, rates with
        their intervals, the operating curve, cautions. None without seeds, or without a pool.
    p_known_ : (n,) of every row of the pool the share of known items at least as strange, a
        conformal p-value; NaN elsewhere. An item is unknown where it is at most
        ``audit_["operating_point"]``. None without seeds, or without a pool.
    in_pool_ : (n,) whether a row is of the pool.
    groups_ : (n,) group of every unknown row from 0, -1 elsewhere.
    preparation_ : how texts or columns became vectors, or what images went through with the preset
        "tuned"; None for other images and vectors.
    model_ : the fitted model.

    Cautions of the audit are also raised as ``CautionWarning``. ``score``, and so cross-validation
    without a ``scoring`` of its own, leaves rows of the pool out; with one, give
    ``cv=s2osc.LabelledFolds(5)``. ``transform`` gives the embedding in which the student separates
    items.

    Without a row of the pool there is nothing unknown to learn: the teacher answers alone.

    What a person corrects is a labelled row, also with a class that is new:
    ``y_corrected[rows] = labels``, and ``fit(X, y_corrected)`` sorts the rest of the pool anew.

    Of scikit-learn's checks of an estimator, one cannot pass: ``check_classifiers_classes`` takes
    -1 for a class, which here marks the pool, as it does in scikit-learn's semi-supervised
    classifiers.
    """

    def __init__(
        self,
        *,
        preset: str = "auto",
        unknown: str = "one",
        seeds: float | str = AUTO,
        false_alarm: float = 0.05,
        false_alarm_of: Mapping[Any, float] | None = None,
        guarantee: str = "average",
        aim: str = "balance",
        unsure: bool = False,
        filter: str = AUTO,
        k: int | str | None = AUTO,
        n_groups: int | str | None = AUTO,
        embedding: str = AUTO,
        keep_columns: Sequence[str] = (),
        flip: bool | None = None,
        fit_on: int = FIT_ON,
        engine: str = "local",
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.unknown = unknown
        self.seeds = seeds
        self.false_alarm = false_alarm
        self.false_alarm_of = false_alarm_of
        self.guarantee = guarantee
        self.aim = aim
        self.unsure = unsure
        self.filter = filter
        self.k = k
        self.n_groups = n_groups
        self.embedding = embedding
        self.keep_columns = keep_columns
        self.flip = flip
        self.fit_on = fit_on
        self.engine = engine
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the known classes and the pool's unknown ones, and answer for the pool."""
        device, given = resolve_device(self.device), X
        X, y = self._prepare(X, without_missing(y), device)
        check_classification_targets(y)
        self.input_shape_ = X.shape[1:]
        self.in_pool_ = in_pool = rows_of_pool(y)
        self.known_classes_, labels = check_labels(y)
        if self.unsure:
            check_free(self.known_classes_.tolist(), marks_of(self.known_classes_)[UNSURE])

        preset = choose_preset(self.preset, device, vectors=X.ndim == 2, n_labelled=len(labels))
        method = build_method(preset, number_classes(settings_by_name(self), self._class_names()))
        seed = seed_of(self.random_state)
        if method.teacher.network.is_pretrained:
            X = self._photos(X, method, device)
        known = Labelled(X[~in_pool], labels)
        self.groups_, self.leaves_ = np.full(len(y), -1), np.full(len(y), -1)
        self.audit_: JsonObject | None = None
        self.p_known_: np.ndarray | None = None
        self.model_: OpenSetModel | KnownOnlyModel
        with shown() if self.verbose else nullcontext(), self._on_engine() as over_rows:
            if in_pool.any():
                solution = fit_large_pool(
                    method,
                    known,
                    X[in_pool],
                    fit_on=self.fit_on,
                    seed=seed,
                    device=device,
                    over_rows=over_rows,
                    raw=raw_texts(
                        given, in_pool, self.preparation_, embedding=self.embedding, device=device
                    ),
                )
                self.model_ = solution.model
                self.groups_[in_pool] = solution.answer.groups
                self.leaves_[in_pool] = solution.leaves
                if audit := solution.audit(self._class_names()):
                    self.audit_ = tell(audit)
                if solution.answer.p_known is not None:
                    self.p_known_ = np.full(len(y), np.nan)
                    self.p_known_[in_pool] = solution.answer.p_known
            else:
                self.model_ = method.fit_known_only(known, seed=seed, device=device)
        self._name_answers(has_pool=bool(in_pool.any()))
        self.transduction_ = y.copy()
        if in_pool.any():
            self.transduction_ = self.transduction_.astype(self.classes_.dtype)
            self.transduction_[in_pool] = self._names(solution.answer.labels)
        for caution in (self.audit_ or {}).get("cautions", ()):
            warnings.warn(caution["text"], CautionWarning, stacklevel=2)
        return self

    @contextmanager
    def _on_engine(self) -> Iterator[OverRows]:
        """Within it, networks are trained by the engine; what comes goes through rows there."""
        require_choice("the engine", self.engine, ("local", "ray"))
        if self.engine == "local":
            yield at_once
            return
        engine = RayEngine()
        with engine.started(Stopwatch()), engine.training():
            yield engine.over_rows

    def _prepare(self, X: Any, y: Any, device: str) -> tuple[np.ndarray, np.ndarray]:
        """Images or vectors of what a user gives, and the labels; notes how they were made."""
        self.preparation_: Preparation | None = choose_preparation(
            X, embedding=self.embedding, keep_columns=self.keep_columns, device=device
        )
        if self.preparation_ is None:
            X, y = validate_data(self, X, y, dtype=None, allow_nd=True, ensure_all_finite=False)
            return as_inputs(X), y
        if isinstance(self.preparation_, TableEncoder):
            validate_data(self, X, skip_check_array=True)
        _, y = check_X_y(np.zeros((len(X), 1)), y)
        check_labels(y)  # before vectors are made, which may take minutes
        with shown() if self.verbose else nullcontext():
            return self._prepared(X), y

    def _photos(self, X: np.ndarray, method: S2OSCMethod, device: str) -> np.ndarray:
        """Images through the pretrained network that f and g start from; notes how."""
        if X.dtype != np.uint8:
            raise SettingsError(f"the preset {self.preset} is for images; give vectors another")
        self.preparation_ = describe_photos(X, method, device)
        with shown() if self.verbose else nullcontext():
            return prepare_photos(X, self.preparation_, device)

    def _prepared(self, X: Any) -> np.ndarray:
        """Vectors of texts, or of rows of a table, made as they were for the fit."""
        require_rows(X)
        if isinstance(self.preparation_, EmbeddingEntry):
            return vectors_of_texts(
                checked_texts(X),
                self.preparation_,
                embedding=self.embedding,
                device=resolve_device(self.device),
            )
        assert isinstance(self.preparation_, TableEncoder)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            validate_data(self, X, skip_check_array=True, reset=False)
        return vectors_of_rows(X, self.preparation_, names)

    def predict(self, X: Any) -> np.ndarray:
        """A known class, or the mark of an unknown item, for every row."""
        return self._names(self._predictions(X).labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on labelled rows; rows of the pool have no label, and are left out."""
        X, y, sample_weight = labelled_rows(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    def transform(self, X: Any) -> np.ndarray:
        """(n, d) the embedding in which the student, or without a pool the teacher, works."""
        inputs = self._check(X)
        return self.model_.features(inputs)

    @property
    def _n_features_out(self) -> int:
        model = self.model_
        network = (model.student if isinstance(model, OpenSetModel) else model.teacher).network
        return int(network.head.in_features)

    def predict_proba(self, X: Any) -> np.ndarray:
        """One column per entry of ``classes_``.

        Its largest entry need not be what ``predict`` says, which holds the odds of unknown
        against the threshold that the seeds set or, without seeds, weighs known against unknown
        before it names a class.
        """
        inputs = self._check(X)
        p = self.model_.probabilities(inputs)
        if len(self.classes_) == len(self.known_classes_):
            return p[:, :-1]
        marked = [marks_of(self.known_classes_)[UNKNOWN]]
        columns = np.append(self.known_classes_.astype(self.classes_.dtype), marked)
        return p[:, np.argsort(columns, kind="stable")]

    def unknown_score(self, X: Any) -> np.ndarray:
        """Rises with the belief that a row is of no known class."""
        return self._predictions(X).unknown_score

    def p_known(self, X: Any) -> np.ndarray | None:
        """The share of known items at least as strange as each row; None without seeds.

        ``predict`` calls a row unknown where it is at most ``model_.operating_point``.
        """
        return self._predictions(X).p_known

    def predict_groups(self, X: Any) -> np.ndarray:
        """(n,) the group of each row that is called unknown, as in ``groups_``; -1 of others.

        The same number is the same group; the number after the last group is that of rows that
        are far from every group.
        """
        inputs = self._check(X)
        return self.model_.answer(inputs).groups

    def describe_groups(self, X: Any) -> list[JsonObject]:
        """What is typical of each group, as words to start a name from; ``X`` is that of the fit.

        Of texts the most distinctive words, of data frames the columns that set it apart; of all
        rows the nearest known class and, for texts and data frames, how the group differs from it.
        """
        check_is_fitted(self, "in_pool_")
        if len(X) != len(self.groups_):
            raise DataError(
                f"X has {len(X)} rows; give the {len(self.groups_)} rows that the model was "
                "fitted on"
            )
        answer = replace(
            self.model_.answer(self._check(X)),
            labels=numbers_of(self.transduction_, self.known_classes_),
            groups=self.groups_,
        )
        profiles = profile_groups(answer, self._class_names(), items_to_compare(X))
        return [dict(to_plain(profile)) for profile in profiles]

    def regroup(
        self, n: int | None = None, *, merge: Sequence[int] = (), split: int | None = None
    ) -> Self:
        """Group the unknown items anew, without a fit: into ``n`` groups, or some groups as one.

        ``merge`` names groups that are one, ``split`` a group that is two. ``groups_``, ``audit_``
        and what the model says about new items change, and nothing else does.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, OpenSetModel):
            raise DataError("nothing in the pool was unknown, so there are no groups to change")
        self.model_ = self.model_.regroup(n, merge=merge, split=split)
        unknown = self.groups_ >= 0
        self.groups_[unknown] = self.model_.grouping.group_of_leaf[self.leaves_[unknown]]
        if self.audit_ is not None and self.audit_.get("groups"):
            audit = Audit.from_json(self.audit_)
            assert audit.groups is not None
            groups = replace(audit.groups, groups=self.model_.grouping.groups)
            self.audit_ = tell(replace(audit, groups=groups))
        return self

    def rows_to_check(self, n: int = 30) -> np.ndarray:
        """Rows of the pool for a person to label, drawn at random; more of them begin with these.

        Thirty labels tell a share to about 18 points, a hundred to 10, three hundred to 6.
        """
        check_is_fitted(self, "in_pool_")
        pool = np.flatnonzero(self.in_pool_)
        if n < 1 or not len(pool):
            raise DataError(f"{n} rows of a pool of {len(pool)} are to be checked; give at least 1")
        return pool[check_order(len(pool), CHECK_SEED)[:n]]

    def check(self, rows: Any, labels: Any) -> JsonObject:
        """What a person's labels of ``rows_to_check`` say: exact intervals, without any assumption.

        A label that is no known class means unknown. A missing one (``""``, None, NaN) counts both
        ways, as does a row that is left out before the last one. Returns what was measured, with
        which ``audit_`` opens from then on; a further check replaces it.
        """
        check_is_fitted(self, "in_pool_")
        pool = np.flatnonzero(self.in_pool_)
        check = check_of_rows(rows, labels, pool)
        answers = numbers_of(self.transduction_[pool], self.known_classes_)
        checked = check.measure(answers, self._class_names())
        if self.audit_:
            self.audit_ = tell(replace(Audit.from_json(self.audit_), checked=checked))
        return dict(to_plain(checked))

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder that ``load`` and ``s2osc predict --model`` read."""
        check_is_fitted(self)
        folder = Path(folder)
        save_model(folder, self.model_, self._class_names(), self.preparation_)
        FitFacts(
            classes=self.known_classes_,
            has_pool=len(self.classes_) > len(self.known_classes_),
            audit=self.audit_,
            feature_names=tuple(getattr(self, "feature_names_in_", ())),
        ).write(folder)
        FitRows(
            labels=numbers_of(self.transduction_, self.known_classes_),
            groups=self.groups_.astype(np.int64),
            leaves=self.leaves_.astype(np.int64),
            in_pool=self.in_pool_,
            p_known=self.p_known_,
        ).write(folder)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto", embedding: str = AUTO) -> Self:
        """The estimator that ``save`` wrote, fitted; its other parameters are the defaults.

        A folder ``model`` that ``s2osc classify`` wrote holds the model alone: classes are text,
        and ``transduction_``, ``groups_``, ``p_known_`` and ``audit_`` are missing.
        Nothing in it is ever run, and it chooses no model of texts: one that is neither
        all-minilm-l6-v2 nor wordllama is loaded where ``embedding`` names it, too.
        """
        folder = Path(folder)
        saved = load_model(folder, resolve_device(device))
        photos = saved.preparation if isinstance(saved.preparation, BackboneEntry) else None
        if photos and photos.first_stage is None:
            raise ModelError(
                f"{folder} was saved with the backbone {photos.name}, and S2OSC takes "
                "images as they are; use `s2osc predict --model`"
            )
        estimator = cls(device=device, embedding=embedding)
        estimator.preparation_ = saved.preparation
        estimator.model_ = saved.model
        estimator.input_shape_ = saved.model.teacher.network.input_shape
        if photos:
            estimator.input_shape_ = photos.image_shape
        if saved.preparation is None or photos:
            estimator.n_features_in_ = estimator.input_shape_[0]
        estimator.known_classes_ = np.array(saved.classes)
        has_pool = isinstance(saved.model, OpenSetModel)
        if facts := FitFacts.read(folder, saved.classes):
            estimator.known_classes_, estimator.audit_ = facts.classes, facts.audit
            has_pool = facts.has_pool
            if facts.feature_names:
                estimator.feature_names_in_ = np.array(facts.feature_names, object)
                estimator.n_features_in_ = len(facts.feature_names)
        estimator._name_answers(has_pool=has_pool)
        if rows := FitRows.read(folder, len(saved.classes)):
            estimator.groups_, estimator.leaves_ = rows.groups, rows.leaves
            estimator.p_known_ = rows.p_known
            estimator.transduction_ = estimator._names(rows.labels)
            if rows.in_pool is not None:
                estimator.in_pool_ = rows.in_pool
        return estimator

    def _name_answers(self, *, has_pool: bool) -> None:
        """Set ``classes_``: the known classes and, where there was a pool, the unknown mark."""
        self.classes_ = self.known_classes_
        if has_pool:
            self.classes_ = np.unique(
                np.append(self.known_classes_, [marks_of(self.known_classes_)[UNKNOWN]])
            )

    def _class_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.known_classes_)

    def _check(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        photos = self.preparation_ if isinstance(self.preparation_, BackboneEntry) else None
        if self.preparation_ is not None and not photos:
            return self._prepared(X)
        if texts_in(X) is not None:
            raise DataError("X holds texts; the model was fitted on images or vectors")
        check_item_shape(X, self.input_shape_)
        X = validate_data(self, X, dtype=None, allow_nd=True, ensure_all_finite=False, reset=False)
        inputs = as_inputs(X)
        return prepare_photos(inputs, photos, resolve_device(self.device)) if photos else inputs

    def _predictions(self, X: Any) -> Predictions:
        inputs = self._check(X)
        return self.model_.predict(inputs)

    def _names(self, labels: np.ndarray) -> np.ndarray:
        return names_of(labels, self.known_classes_.astype(self.classes_.dtype))
