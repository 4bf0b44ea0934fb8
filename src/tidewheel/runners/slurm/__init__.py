"""Jobs that Slurm runs: submitted with sbatch, watched with one squeue, ended with scancel."""
