"""Shows runs as documents: what people, jobs and programs see of a run, by the store alone."""

from tidewheel.views.catalogue import look
from tidewheel.views.snapshot import load_for_looking

__all__ = ["look", "load_for_looking"]
