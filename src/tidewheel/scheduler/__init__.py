"""The loop that advances runs: what happened is read, decided on, and written in batches."""
