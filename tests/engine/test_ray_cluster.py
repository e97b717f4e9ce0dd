"""Where a Ray cluster is looked for."""

import socket

import pytest

from s2osc.engine.ray_cluster import check_reachable
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
