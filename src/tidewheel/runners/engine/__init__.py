"""What the runners of containers have in common: policy, calls, names, logs, the watch."""
