-- Events: the place of the last one, the last place of which something was deleted, and whether it counts.
-- A floor among transactions that are still open counts when they are over.
WITH floor AS (
    SELECT xid, seq, xid < pg_snapshot_xmin(pg_current_snapshot()) AS counts
      FROM tidewheel.event_floor
     UNION ALL
    SELECT '0'::xid8, 0, true
     ORDER BY xid DESC LIMIT 1
), seen AS (
    (SELECT xid, seq FROM tidewheel.history
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY xid DESC, seq DESC LIMIT 1)
     UNION ALL
    (SELECT xid, seq + cardinality(task_seqs) - 1 FROM tidewheel.joint_step
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY xid DESC, seq DESC LIMIT 1)
     UNION ALL
    (SELECT xid, seq FROM tidewheel.run_history
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY xid DESC, seq DESC LIMIT 1)
     UNION ALL
    SELECT xid, seq FROM floor WHERE counts
     UNION ALL
    SELECT '0'::xid8, 0
)
SELECT seen.xid::text, seen.seq, floor.xid::text, floor.seq, floor.counts
  FROM seen, floor
 ORDER BY seen.xid DESC, seen.seq DESC LIMIT 1;
