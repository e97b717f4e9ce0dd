"""A saved model's answer as one graph of tensors, from items to labels, for other runtimes.

    vectors    (n, D) float32, as they come ─► scaling ─┐
    images     (n, H, W[, 3]) uint8, of the model's size ─┼► f, g ─► threshold ─► label, scores
    photos     (n, views, C, side, side) float32 from 0 to 255 ─► backbone ─► scaling ─┘
               (maps instead of scaled features, where f and g were trained from them on)

Steps and types are those of ``model.py``. Which group an unknown item belongs to is looked up among
the items of the pool, and no part of the graph.
"""

import numpy as np
import torch
from torch import Tensor, nn

from s2osc.errors import SettingsError
from s2osc.nets.backbones import Backbone
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.features import LARGEST
from s2osc.nets.networks import Network
from s2osc.pipeline.audit.confidence import LEAST, SUREST, Curve
from s2osc.pipeline.audit.statistics import p_values_of
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.pipeline.model import CalibrationScores, KnownOnlyModel, OpenSetModel
from s2osc.pipeline.scaling import LINEAR, Scaling
from s2osc.pipeline.student import Student
from s2osc.types import UNKNOWN

OUTPUTS = ("label", "unknown_score", "nearest", "confidence", "p_known")
"""What the graph gives for each item; the last only where something was held back."""


class ScalingGraph(nn.Module):
    """``Scaling.transform``."""

    centre: Tensor
    rate: Tensor
    weight: Tensor

    def __init__(self, scaling: Scaling):
        super().__init__()
        spread = scaling.spread
        rate = np.divide(1, spread, out=np.zeros(len(spread)), where=spread > 0)
        for name, values in (
            ("centre", scaling.centre),
            ("rate", rate),
            ("weight", scaling.weight),
        ):
            self.register_buffer(name, torch.from_numpy(np.asarray(values, np.float64)))

    def forward(self, vectors: Tensor) -> Tensor:
        scaled = (vectors.double() - self.centre) * self.rate
        beyond = (scaled.abs() - LINEAR).clamp_min(0)
        tamed = scaled.clamp(-LINEAR, LINEAR) + torch.sign(scaled) * torch.log1p(beyond)
        return (tamed * self.weight).float()


class PhotoGraph(nn.Module):
    """``Backbone`` on every view, its features rounded as the cache keeps them."""

    mean: Tensor
    scale: Tensor

    def __init__(self, backbone: Backbone):
        super().__init__()
        if not isinstance(backbone.network, nn.Module):
            raise SettingsError(
                f"the backbone {backbone.name} cannot be part of a graph; export a model of "
                "efficientnet-lite0, or one of timm's"
            )
        self.network = backbone.network
        for name in ("mean", "scale"):
            values = torch.tensor(getattr(backbone, name)).view(1, -1, 1, 1)
            self.register_buffer(name, values)

    def forward(self, views: Tensor) -> Tensor:
        pixels = (views.flatten(0, 1) - self.mean) / self.scale
        features = self.network(pixels).clamp(-LARGEST, LARGEST).half().float()
        return features.unflatten(0, (views.shape[0], views.shape[1]))


class ImageGraph(nn.Module):
    """Images as they come, in the order of axes that networks take."""

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.float()
        return pixels.unsqueeze(1) if images.ndim == 3 else pixels.permute(0, 3, 1, 2)


class CurveGraph(nn.Module):
    """``Curve``: straight between its points and level outside."""

    places: Tensor
    values: Tensor

    def __init__(self, curve: Curve):
        super().__init__()
        places, values = np.array(curve.places), np.array(curve.values)
        if len(places) == 1:  # level everywhere
            places, values = np.append(places, places + 1), np.append(values, values)
        self.register_buffer("places", torch.from_numpy(places))
        self.register_buffer("values", torch.from_numpy(values))

    def forward(self, scores: Tensor) -> Tensor:
        scores = scores.double().clamp(self.places[0], self.places[-1])
        after = (scores[:, None] >= self.places).sum(1).clamp(1, len(self.places) - 1)
        low, high = self.places[after - 1], self.places[after]
        # Two points at one place are a step.
        part = (scores - low) / (high - low).clamp_min(torch.finfo(torch.float64).tiny)
        return self.values[after - 1] + part * (self.values[after] - self.values[after - 1])


class PValueGraph(nn.Module):
    """``statistics.p_known``: the share of known items at least as strange."""

    falling: Tensor
    p_values: Tensor

    def __init__(self, calibration: CalibrationScores):
        super().__init__()
        falling, p_values = p_values_of(calibration.scores, calibration.weights)
        self.register_buffer("falling", torch.from_numpy(np.asarray(falling, np.float64)))
        self.register_buffer("p_values", torch.from_numpy(p_values))

    def forward(self, scores: Tensor) -> Tensor:
        return self.p_values[(self.falling >= scores.double()[:, None]).sum(1)]


class StudentGraph(nn.Module):
    """``Student.probabilities`` and ``OpenSetModel.predicts_unknown``."""

    thresholds: Tensor | None

    def __init__(self, student: Student, thresholds: Thresholds | None, n_classes: int):
        super().__init__()
        self.network = student.network
        self.student = student
        of_class = None
        if thresholds is not None:
            of_class = torch.full((n_classes,), thresholds.common, dtype=torch.float64)
            for name, own in thresholds.of_class.items():
                of_class[name] = own
        self.register_buffer("thresholds", of_class)

    def probabilities(self, logits: Tensor, teacher_logits: Tensor) -> Tensor:
        """(n, C + 1)."""
        p = logits.softmax(1)
        if self.student.unknown == "many":
            named = teacher_logits.softmax(1)
        elif self.student.vote:
            named = (self.student.vote_weight * logits[:, :-1] + teacher_logits).softmax(1)
        else:
            return p
        return torch.cat([p[:, :-1].sum(1, keepdim=True) * named, p[:, -1:]], dim=1)

    def is_unknown(self, logits: Tensor, odds: Tensor, nearest: Tensor) -> Tensor:
        if self.thresholds is None:
            return logits.argmax(1) == logits.shape[1] - 1
        return odds.double() > self.thresholds[nearest]


class AnswerGraph(nn.Module):
    """``predict`` of a saved model: what ``OUTPUTS`` names, for a batch of any size."""

    def __init__(self, model: OpenSetModel | KnownOnlyModel, backbone: Backbone | None = None):
        super().__init__()
        self.teacher: Network = model.teacher.network
        is_image = len(self.teacher.input_shape) > 1
        self.prepare = PhotoGraph(backbone) if backbone else ImageGraph() if is_image else None
        # Networks that were trained from maps on take these alone, which follow the features.
        self.takes_maps = self.teacher.settings.is_pretrained
        is_scaled = len(model.scaling.centre) > 0 and not self.takes_maps
        self.scaling = ScalingGraph(model.scaling) if is_scaled else None
        self.student: StudentGraph | None = None
        if isinstance(model, OpenSetModel):
            n_classes = model.teacher.n_classes
            self.student = StudentGraph(model.student, model.thresholds, n_classes)
        sure = model.confidence
        self.named = CurveGraph(sure.named) if sure else None
        self.unknown = CurveGraph(sure.unknown) if sure and sure.unknown else None
        self.p_value = PValueGraph(model.calibration) if model.calibration else None
        self.eval()

    @property
    def output_names(self) -> tuple[str, ...]:
        return OUTPUTS if self.p_value else OUTPUTS[:-1]

    def forward(self, items: Tensor) -> tuple[Tensor, ...]:
        inputs = self.prepare(items) if self.prepare else items
        inputs = inputs[:, :, N_FEATURES:] if self.takes_maps else inputs
        inputs = self.scaling(inputs) if self.scaling else inputs
        teacher_logits = self.teacher(inputs)
        if self.student is None:
            found = self._by_teacher(teacher_logits)
        else:
            found = self._by_student(self.student, self.student.network(inputs), teacher_logits)
        *answers, score = found
        return (*answers, self.p_value(score)) if self.p_value else tuple(answers)

    def _by_teacher(self, logits: Tensor) -> tuple[Tensor, ...]:
        """``KnownOnlyModel.answer``."""
        log_p = logits.log_softmax(1)
        p = log_p.exp()
        entropy = -(p * log_p).sum(1)
        nearest, best = p.argmax(1), p.amax(1)
        confidence = self.named(_log_odds(best)) if self.named else best
        return nearest, entropy / np.log(logits.shape[1]), nearest, confidence, entropy

    def _by_student(
        self, student: StudentGraph, logits: Tensor, teacher_logits: Tensor
    ) -> tuple[Tensor, ...]:
        """``OpenSetModel.answer``."""
        p = student.probabilities(logits, teacher_logits)
        known, nearest = p[:, :-1], p[:, :-1].argmax(1)
        odds = logits[:, -1] - logits[:, :-1].logsumexp(1)
        is_unknown = student.is_unknown(logits, odds, nearest)
        best = known.amax(1)
        if self.named:
            named = self.named(_log_odds(best / known.sum(1).clamp_min(LEAST)))
            p_unknown = self.unknown(odds) if self.unknown else torch.zeros_like(named)
            confidence = torch.where(is_unknown, p_unknown, (1 - p_unknown) * named)
        else:
            confidence = torch.where(is_unknown, p[:, -1], best)
        label = torch.where(is_unknown, torch.full_like(nearest, UNKNOWN), nearest)
        return label, p[:, -1], nearest, confidence, odds


def _log_odds(probability: Tensor) -> Tensor:
    return probability.double().clamp(SUREST, 1 - SUREST).logit()
