"""Where a Ray cluster is looked for."""

import socket
import sys
from types import SimpleNamespace

import pytest

from s2osc.engine.ray_cluster import check_reachable, connected
from s2osc.errors import SettingsError


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999999"])
def test_an_address_where_nothing_answers_is_one_line(address):
    with pytest.raises(SettingsError, match="Ray cannot be reached at") as refused:
        check_reachable(address)
    assert "\n" not in str(refused.value)


def test_an_address_that_answers_is_left_to_ray():
    with socket.create_server(("127.0.0.1", 0)) as there:
        check_reachable(f"127.0.0.1:{there.getsockname()[1]}")
    check_reachable("auto")


class SlowRay(SimpleNamespace):
    """Takes too long to start a few times, as Ray does on a busy machine."""

    def __init__(self, n_failures):
        super().__init__(n_failures=n_failures, n_starts=0, n_ends=0)

    def is_initialized(self):
        return False

    def init(self, **facts):
        assert facts["address"] == "local"
        self.n_starts += 1
        if self.n_starts <= self.n_failures:
            raise Exception("The current node timed out\nduring startup.")

    def shutdown(self):
        self.n_ends += 1


def test_a_start_that_takes_too_long_is_tried_again(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", slow := SlowRay(2))
    with connected() as ray:
        assert ray is slow
    assert (slow.n_starts, slow.n_ends) == (3, 3)


def test_a_machine_on_which_ray_does_not_start_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SlowRay(99))
    with pytest.raises(SettingsError, match="Ray does not start on this machine") as refused:
        connected().__enter__()
    assert "timed out" in str(refused.value)
    assert "\n" not in str(refused.value)
