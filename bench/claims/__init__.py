"""Whether a claim stays as quick when a million tasks are stored (last part of goal P7)."""
