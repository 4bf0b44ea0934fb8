"""Hears the commands of a run's event handlers; apart, since a run service needs `open_run`."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tidewheel.core.operator.views import RunView
from tidewheel.ports.store import Store
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.process.event_handlers import (
    Unheard,
    handler_environment,
    handler_folder,
)
from tidewheel.runners.worker_home import write_programs
from tidewheel.services.job_api import JobApi, handler_caller
from tidewheel.services.paths import run_directory
from tidewheel.services.run_service import RunService


@asynccontextmanager
async def handler_socket(
    store: Store, run: RunView, home: Path, message_bytes_max: int
) -> AsyncIterator[dict[str, str]]:
    """Gives the environment of a run's event handlers, and hears their commands meanwhile."""
    directory = run_directory(home, run.name)
    folder = handler_folder(directory)
    folder.mkdir(parents=True, exist_ok=True)
    server = MessageServer(home, message_bytes_max, JobApi(RunService(store, home), home))
    secret = secrets.token_urlsafe()
    await server.start()
    try:
        server.expect(secret, folder, Unheard(), handler_caller(run.name))
        programs = write_programs(home)
        yield handler_environment(os.environ, run.name, directory, programs, secret)
    finally:
        await server.stop()
