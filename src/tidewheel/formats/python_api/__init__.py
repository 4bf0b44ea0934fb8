"""Defines workflows in Python by decorators and operators (docs/python_api.md)."""

from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.formats.python_api.assembly import ReadOptions
from tidewheel.formats.python_api.terms import BadStatement, all_of, any_of
from tidewheel.formats.python_api.workflow import Compiled, Workflow, load_python

__all__ = [
    "Workflow",
    "all_of",
    "any_of",
    "Compiled",
    "InvalidDefinition",
    "BadStatement",
    "ReadOptions",
    "load_python",
]
