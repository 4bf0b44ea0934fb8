"""Drives one peer through all phases, inside that peer's own interpreter."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.postgres import PostgresAddress
from bench.queue.figures import DRAIN_1, DRAIN_2, ENQUEUE, WAKEUP, Figures
from bench.queue.peer import Peer, Place

REASON_LENGTH_MAX = 200


def main() -> None:
    wish = _arguments()
    place = Place(wish.folder, PostgresAddress(wish.socket, wish.programs))
    peer: Peer = importlib.import_module(wish.module).open_peer(wish.variant, place)
    figures = Figures(tasks=wish.tasks)
    for workers, phase in ((1, DRAIN_1), (2, DRAIN_2)):
        step = partial(_drain, peer, place, figures, workers, phase)
        _attempt(figures, phase, step)
        figures.save(wish.answer)
    if wish.samples:
        _attempt(figures, WAKEUP, partial(_wake, peer, figures, wish.samples))
        figures.save(wish.answer)


def _drain(peer: Peer, place: Place, figures: Figures, workers: int, phase: str) -> None:
    peer.prepare()
    rate = figures.tasks / peer.enqueue(figures.tasks)
    figures.rates[ENQUEUE] = max(rate, figures.rates.get(ENQUEUE, 0.0))
    place.settle(peer.name)
    figures.rates[phase] = figures.tasks / peer.drain(workers)


def _wake(peer: Peer, figures: Figures, samples: int) -> None:
    peer.prepare()
    figures.wakeups = peer.wakeups(samples)


def _attempt(figures: Figures, phase: str, step: Callable[[], None]) -> None:
    """Run a phase; its failure is recorded and the other phases still have their chance."""
    try:
        step()
    except Exception as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        figures.failures[phase] = text[:REASON_LENGTH_MAX]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("variant")
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--samples", type=int, required=True)
    for name in ("--folder", "--socket", "--programs", "--answer"):
        parser.add_argument(name, type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
