"""Runners turn an attempt into processes, containers, Slurm jobs or calls of functions."""

# Signals that a job may send to all of its processes: they end its script, which what tidewheel
# puts around the script (wrappers, what masks secrets) outlives, to say how it ended.
OUTLIVED = ("HUP", "INT", "QUIT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "XCPU", "XFSZ")
