"""What changed when a stream has learnt, without a browser."""

import shutil

import pytest

from files import NEW_CLASS, easy_vectors, known_labels, npz, pool_labels
from s2osc.app.request import Request
from s2osc.app.stream.begin import init_files
from s2osc.app.stream.window import window_files
from s2osc.page.learning import learn_window
from s2osc.stream.queries import QuerySettings

ROLES = ("teacher", "student", "update")
TINY = {
    **{f"{role}.training.epochs": 1 for role in ROLES},
    **{f"{role}.training.min_steps": 60 for role in ROLES},
    **{f"{role}.network.hidden": "16,16" for role in ROLES[:2]},
    "clusters.n_groups": 1,
}
WINDOW = pool_labels(20)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A stream whose first window was answered for."""
    folder = tmp_path_factory.mktemp("stream")
    known = known_labels(60)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(folder / "window.npz", x=easy_vectors(WINDOW, seed=1), y=WINDOW)
    init_files(folder / "known.npz", folder / "state", Request(changes=TINY, device="cpu"))
    window_files(folder / "state", folder / "window.npz", folder / "out", QuerySettings(20))
    return folder


@pytest.fixture
def learn(answered, tmp_path):
    """Teach a copy of the stream the new class, and return what changed."""
    state = shutil.copytree(answered / "state", tmp_path / "state")
    labels = {str(row): name for row, name in enumerate(WINDOW) if name == NEW_CLASS}
    return lambda: learn_window(state, answered / "out", tmp_path / "states", labels)["change"]


def test_items_of_a_new_class_have_changed_class(learn):
    change = learn()
    to_new = sum(n for _, new, n in change["moves"] if new == NEW_CLASS)
    assert change["new_classes"] == [NEW_CLASS]
    assert to_new > WINDOW.count(NEW_CLASS) / 2
    assert change["n_changed"] == sum(n for _, _, n in change["moves"])


def test_a_window_whose_files_are_gone_is_learnt_and_what_changed_is_said_to_be_unknown(
    learn, answered
):
    (answered / "window.npz").rename(answered / "elsewhere.npz")
    try:
        change = learn()
    finally:
        (answered / "elsewhere.npz").rename(answered / "window.npz")
    assert change["new_classes"] == [NEW_CLASS]
    assert (change["n_changed"], change["moves"]) == (None, [])
    assert "Which items changed class is not known: there is no file" in change["kept"]
