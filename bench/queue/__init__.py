"""The task queue against its peers: enqueue, drain, wake-up (goals P8, P9 and P10)."""
