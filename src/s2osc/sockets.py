"""Sockets that servers listen on."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from s2osc.errors import OutputError

N_PORTS = 20
"""Ports that are tried from the first one on."""


@contextmanager
def bound_socket(host: str, port: int | None, first: int) -> Iterator[socket.socket]:
    """A socket on the port that is asked for, or on the first that is free."""
    ports = [port] if port is not None else list(range(first, first + N_PORTS))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once where the protocol is named; else they wait for 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for each in ports:
            try:
                bound.bind((host, each))
                break
            except OSError as error:
                if each == ports[-1]:
                    raise OutputError(
                        f"port {each} of {host} cannot be used: {error.strerror}; give another "
                        "with --port"
                    ) from error
        bound.listen()  # a client that is quicker than the server waits
        yield bound
