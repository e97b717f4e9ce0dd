"""A Ray cluster: joined, or started on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from s2osc.errors import SettingsError

NEEDS = "the engine needs ray, which is not installed; run `pip install 's2osc[ray]'`"


@contextmanager
def connected(address: str | None = None, n_workers: int | None = None) -> Iterator[Any]:
    """Ray, joined at an address or started here; what was started here ends afterwards."""
    try:
        import ray  # noqa: PLC0415  (an extra, and slow to import)
    except ModuleNotFoundError as error:
        raise SettingsError(NEEDS) from error
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(
                address=address or "local",  # else whatever was left of another one is joined
                num_cpus=None if address else n_workers,
                log_to_driver=False,
                include_dashboard=False,
                configure_logging=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = address or "this machine"
            raise SettingsError(
                f"Ray cannot be reached at {where} ({str(error).splitlines()[0]}); give the "
                "address that `ray start --head` printed, or leave --ray-address away"
            ) from error
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()
