"""Runs as documents: what people, jobs and programs see of a run, from the store alone."""

from tidewheel.views.loading import load_for_looking
from tidewheel.views.looks import look

__all__ = ["look", "load_for_looking"]
