"""Implements a store that is behind a server: every operation is a request over HTTP."""

from tidewheel.store.remote.store import RemoteStore, open_remote_store
from tidewheel.store.remote.transport import Response, ServerEvent, Transport

__all__ = ["RemoteStore", "Response", "ServerEvent", "Transport", "open_remote_store"]
