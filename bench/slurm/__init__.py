"""Jobs handed to a real Slurm and looked after, beside Slurm's own programs in a bare loop."""
