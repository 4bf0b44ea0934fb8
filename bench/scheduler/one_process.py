"""A run that is driven in this process, through the store and the services alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import NewRun, RunOptions
from tidewheel.core.operator.views import RunView
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, load_workflow
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import capture, load_options
from tidewheel.wiring.stores import opened_store


def store_address(home: Path) -> str:
    return f"sqlite:///{home / 'tidewheel.db'}"


@asynccontextmanager
async def store_in(home: Path) -> AsyncIterator[Store]:
    home.mkdir(parents=True, exist_ok=True)
    async with opened_store(store_address(home)) as store:
        yield store


def read_flow(flow: Path, options: RunOptions) -> LoadedWorkflow:
    findings = Findings()
    loaded = load_workflow(flow, load_options(options, "flow"), findings)
    assert not findings.has_errors, [str(one) for one in findings]
    return loaded


async def create_run(store: Store, flow: Path, mode: str) -> RunView:
    """A new run of the definition in ``flow``."""
    options = RunOptions(mode=mode, now=time.time_ns() / 1e9)
    definition = capture(read_flow(flow, options), flow).definition
    await store.save_definition(definition)
    new = NewRun(
        workflow="flow", definition=definition.digest, options=options, folder=str(flow)
    )
    return await store.create_run(new)
