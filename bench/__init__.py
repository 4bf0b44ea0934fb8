"""Speed, measured as ratios against peers in one run on one machine; no test asserts a time."""
