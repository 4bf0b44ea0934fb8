"""Runs as documents: what people, jobs and programs see of a run, from the store alone."""

from tidewheel.services.run_views.loading import load_for_looking
from tidewheel.services.run_views.looks import look

__all__ = ["look", "load_for_looking"]
