"""A Ray cluster: joined, or started on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from s2osc.errors import SettingsError
from s2osc.files import reason

N_STARTS = 3
"""Tries to start Ray, which gives up after 30 s: on a busy machine that may be too early."""
QUIET: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
LONGEST_CONNECT = 5.0
"""Seconds in which an address must answer; Ray itself tries for minutes."""
NEEDS = "the engine needs ray, which is not installed; run `pip install 's2osc[ray]'`"


@contextmanager
def connected(address: str | None = None, n_workers: int | None = None) -> Iterator[Any]:
    """Ray, joined at an address or started here; what was started here ends afterwards."""
    try:
        import ray  # noqa: PLC0415  (an extra, and slow to import)
    except ModuleNotFoundError as error:
        raise SettingsError(NEEDS) from error
    is_ours = not ray.is_initialized()
    if is_ours and address:
        check_reachable(address)
        try:
            ray.init(address=address, include_dashboard=False, **QUIET)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise unreachable(address, error) from error
    elif is_ours:
        start_here(ray, n_workers)
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def start_here(ray: Any, n_workers: int | None) -> None:
    """Start Ray on this machine, again where that takes it too long."""
    for n_left in reversed(range(N_STARTS)):
        try:
            # Local: else whatever was left of another one is joined.
            ray.init(address="local", num_cpus=n_workers, include_dashboard=False, **QUIET)
        except Exception as error:  # Ray says by a plain one that it took too long
            ray.shutdown()
            if not n_left:
                raise SettingsError(
                    f"Ray does not start on this machine ({reason(error)}); try again when it is "
                    "less busy, or leave --engine ray away"
                ) from error
        else:
            return


def check_reachable(address: str) -> None:
    """Refuse an address at which nothing answers; one such as auto is left to Ray."""
    name, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((name.strip("[]"), int(port)), LONGEST_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise unreachable(address, error) from error


def unreachable(where: str, error: Exception) -> SettingsError:
    """What is said where Ray is not."""
    return SettingsError(
        f"Ray cannot be reached at {where} ({str(error).splitlines()[0]}); give the address that "
        "`ray start --head` printed, or leave --ray-address away"
    )
