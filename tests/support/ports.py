"""Ports that stay a test's own while nobody listens at them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """The system gives it to nobody else; whoever names it may listen there, once or again.

    It is bound and never listens, so that connections are refused; a server that sets
    SO_REUSEADDR, as all do here, may bind beside it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])
