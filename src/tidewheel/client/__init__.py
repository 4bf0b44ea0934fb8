"""Using a store from an application: submit and look, lease and report, wait and ask why."""

from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.blocking import Client
from tidewheel.client.fields import TaskFields
from tidewheel.client.results import Batch, LeasedTask, Task

__all__ = ["Client", "AsyncClient", "TaskFields", "Task", "LeasedTask", "Batch"]
