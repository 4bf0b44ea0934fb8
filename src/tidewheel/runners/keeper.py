"""Starts the guard of fenced jobs by its earlier name.

A worker of an earlier version that is still running starts ``-m tidewheel.runners.keeper``.
"""

from tidewheel.runners.shell.fence_guard import main

if __name__ == "__main__":
    main()
