"""Runs jobs by Slurm: submits with sbatch, watches with one squeue, ends with scancel."""
