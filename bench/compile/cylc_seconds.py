"""Run by the interpreter that has cylc-flow: seconds to read and validate, in process.

Prints the best of some rounds, each in a child of its own, because Cylc keeps its configuration
in the process.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from cylc.flow.config import WorkflowConfig
from cylc.flow.option_parsers import Options
from cylc.flow.scripts.validate import get_option_parser

ROUNDS = 3


def seconds(flow_file: str) -> float:
    options = Options(get_option_parser())(is_validate=True)
    begin = time.perf_counter()
    WorkflowConfig("bench", flow_file, options, {})
    return time.perf_counter() - begin


def in_a_child(flow_file: str) -> float:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, str(seconds(flow_file)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        measured = float(answer.read())
    os.wait()
    return measured


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.stdout.write(str(min(in_a_child(sys.argv[1]) for _ in range(ROUNDS))))
