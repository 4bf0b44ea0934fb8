-- Events: the place of the last one, the last place of which something was deleted, and whether it counts.
WITH floor AS (
    SELECT coalesce(max(major), 0) AS major, coalesce(max(minor), 0) AS minor FROM event_floor
), seen AS (
    SELECT major, minor FROM floor
     UNION ALL
    SELECT seq, 0 FROM (SELECT seq FROM history ORDER BY seq DESC LIMIT 1)
     UNION ALL
    SELECT behind, seq
      FROM (SELECT behind, seq FROM run_history ORDER BY behind DESC, seq DESC LIMIT 1)
)
SELECT seen.major, seen.minor, floor.major, floor.minor, 1
  FROM seen, floor
 ORDER BY seen.major DESC, seen.minor DESC LIMIT 1;
