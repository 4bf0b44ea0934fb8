"""Flows that have ended by themselves are reported ended (seed 001, "Reflow restrictions")."""

from __future__ import annotations

from tidewheel.core.sched.draft import Draft


def report_ended_flows(draft: Draft) -> None:
    """A flow without pooled tasks has ended; its counter goes, its number is not used again."""
    pool = draft.pool
    for flow in [flow for flow, count in pool.flow_counts.items() if not count]:
        del pool.flow_counts[flow]
        if flow != 1:
            draft.notice("flow ended", None, f"flow {flow} has ended")
