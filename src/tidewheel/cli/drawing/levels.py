"""Numbers that must not go down, as near as possible to those that are wished for."""

from __future__ import annotations

from collections.abc import Sequence


def nearest_rising(wished: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The rising numbers with the least weighted squared distance (pool adjacent violators)."""
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(wished, weights, strict=True):
        mean, mass, count = value, weight, 1
        while means and means[-1] > mean:
            total = mass + masses[-1]
            mean = (mean * mass + means.pop() * masses.pop()) / total
            mass = total
            count += counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return [mean for mean, count in zip(means, counts, strict=True) for _ in range(count)]
