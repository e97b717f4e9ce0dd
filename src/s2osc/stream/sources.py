"""Windows of photos or texts from another source.

Another camera changes pixels, another writer letters, and what that does to features has no simple
form. So what is remembered as features is remembered as photos or texts, too: where a window comes
from another source, they are given its change and become features again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.scaling import Scaling
from s2osc.pipeline.sources.changes import Change
from s2osc.pipeline.sources.matched import Matched, RawItems
from s2osc.pipeline.sources.suspicion import suspected_of_raw
from s2osc.stream.learner import Incremental, Knowledge, Recognition, hide_in_window
from s2osc.stream.originals import Originals
from s2osc.stream.state import StreamState
from s2osc.types import Labelled

MOST_BYTES = 2**26
"""Of photos that are remembered; beyond it a window is compared by its features alone."""


def with_originals(state: StreamState, features: np.ndarray, items: np.ndarray) -> StreamState:
    """The state that also knows what these are features of; what is not needed is left out.

    Needed is what is remembered, waits, or is asked about.
    """
    found = Originals.of(features, items)
    if state.originals is not None:
        found = state.originals.followed_by(found)
    memory, questions = state.knowledge.memory, state.questions
    found = found.only(
        memory.exemplars.inputs,
        memory.seeds.inputs,
        state.waiting.inputs,
        *([] if questions is None else [questions.inputs]),
    )
    return replace(state, originals=found if found.items.nbytes <= MOST_BYTES else None)


@dataclass(frozen=True)
class OriginalsLearner(Incremental):
    """Our learner for one window of photos or texts: sources are compared by these."""

    window: np.ndarray | None = None  # the photos or texts of the window
    remembered: Originals | None = None
    embed: Callable[[np.ndarray], np.ndarray] | None = None  # some of them in, features out

    def recognise(
        self, state: Knowledge, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recognition:
        """The answer for a window, with what is remembered as if from its source."""
        assert self.window is not None
        assert self.remembered is not None
        assert self.embed is not None
        embed, (exemplars, seeds) = self.embed, self.speaking(state)
        originals = [self.remembered.find(items.inputs) for items in (exemplars, seeds)]
        of_exemplars, of_seeds = originals
        if of_exemplars is None or of_seeds is None:
            return super().recognise(state, window, seed=seed, device=device)

        def changed(changes: tuple[Change, ...]) -> tuple[Labelled, Labelled]:
            return (
                _with_changes(exemplars, of_exemplars, changes, embed, seed=seed),
                _with_changes(seeds, of_seeds, changes, embed, seed=seed),
            )

        # Seeds are drawn at random, as the items of the window are; exemplars are chosen.
        raw = RawItems(self.window, of_seeds, embed)
        by_raw = self.method.match_raw(seeds, window, raw, seed=seed)
        if by_raw is None:
            return super().recognise(state, window, seed=seed, device=device)

        def suspected(scaling: Scaling) -> Iterator[Matched]:
            def hide(match: Matched) -> tuple[Labelled, Pool]:
                training, held_back = map(scaling.transform_items, changed(match.changes))
                return training, hide_in_window(
                    scaling.transform(window), held_back, training.n_classes, seed=seed
                )

            return suspected_of_raw(by_raw, hide, seed=seed)

        return self.recognise_by(
            state,
            window,
            *(changed(by_raw.changes) if by_raw.changes else (exemplars, seeds)),
            by_raw=by_raw,
            suspected=suspected,
            seed=seed,
            device=device,
        )


def _with_changes(
    items: Labelled,
    originals: np.ndarray,
    changes: tuple[Change, ...],
    embed: Callable[[np.ndarray], np.ndarray],
    *,
    seed: int,
) -> Labelled:
    for change in changes:
        originals = change.apply(originals, seed=seed)
    return Labelled(embed(originals), items.labels)
