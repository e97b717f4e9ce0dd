"""The address that a command serves under: its options, and which of them are refused."""

import argparse

from s2osc.errors import SettingsError

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
N_PORTS = 65_536


def add_address(parser: argparse.ArgumentParser, *, first_port: int, risk: str) -> None:
    """``--port``, ``--host`` and ``--i-know``; ``risk`` is what others could do."""
    parser.add_argument(
        "--port", type=int, help=f"to listen on (default: {first_port}, or the next that is free)"
    )
    parser.add_argument(
        "--host",
        default=LOCAL_HOSTS[0],
        help="the address to serve under (default: 127.0.0.1, which this machine alone can reach)",
    )
    parser.add_argument(
        "--i-know",
        action="store_true",
        help=f"serve under an address that others can reach, without encryption: {risk}",
    )


def check_address(options: argparse.Namespace, *, risk: str) -> None:
    """Refuse an address that others can reach, unless that is meant, and what is no port."""
    if options.host not in LOCAL_HOSTS and not options.i_know:
        raise SettingsError(
            f"--host is {options.host}, which other machines can reach: {risk}, and the traffic is "
            "not encrypted; give --i-know if that is meant"
        )
    if options.port is not None and not 0 <= options.port < N_PORTS:
        raise SettingsError(f"--port is {options.port}; give a number from 1 to {N_PORTS - 1}")
