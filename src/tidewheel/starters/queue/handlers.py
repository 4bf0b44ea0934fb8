"""Functions that a worker calls for tasks of the queue.

Run them:  tidewheel worker --handlers handlers:handlers --exit-when-idle
"""

from tidewheel import Handlers, JobContext

handlers = Handlers()


@handlers.register("resize")
def resize(spec: dict[str, int], job: JobContext) -> dict[str, int]:
    """Handles one task: `spec` is its input, and the return value becomes its values."""
    job.message(f"width {spec['width']}")
    job.progress(0.5)
    return {"pixels": spec["width"] * spec["width"]}
