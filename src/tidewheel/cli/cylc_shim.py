"""Keeps the old name of `tidewheel.cli.cylc`, for the command `cylc` of jobs that still run.

In their state directory an earlier version wrote a file `bin/cylc`, which starts this module.
"""

if __name__ == "__main__":
    from runpy import run_module

    run_module("tidewheel.cli.cylc", run_name="__main__", alter_sys=True)
