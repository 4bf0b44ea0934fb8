-- Claim by rules on PostgreSQL: what is new of lanes, of each the head and whether there is room; keys of which nothing is ready have none.
-- Lanes whose rates leave room again are opened.
told AS (
    DELETE FROM tidewheel.lane_news WHERE queue = :queue RETURNING key
), head AS MATERIALIZED (
    SELECT lane.key, first.rank, first.task_seq, {is_full} AS closed
      FROM (SELECT DISTINCT key FROM told) AS lane
      LEFT JOIN LATERAL (
               SELECT ready.rank, ready.task_seq
                 FROM tidewheel.ready
                WHERE {stands_in_lane}
                ORDER BY ready.rank, ready.task_seq
                LIMIT 1) AS first ON true
), gone AS (
    DELETE FROM tidewheel.lane USING head
     WHERE lane.key = head.key AND lane.queue = :queue AND head.task_seq IS NULL
), opened AS (
    UPDATE tidewheel.lane SET closed = false, opens_at = NULL
     WHERE queue = :queue AND opens_at <= (SELECT tidewheel.now_seconds())
       AND NOT EXISTS (SELECT 1 FROM told WHERE told.key = lane.key)
    RETURNING lane.key, lane.turn, lane.rank, lane.task_seq
), put AS (
    INSERT INTO tidewheel.lane (queue, key, turn, rank, task_seq, closed)
    SELECT :queue, key, (SELECT turns FROM tidewheel.queue WHERE name = :queue), rank, task_seq, closed
      FROM head
     WHERE task_seq IS NOT NULL
        ON CONFLICT (key, queue) DO UPDATE
       SET rank = excluded.rank, task_seq = excluded.task_seq, closed = excluded.closed, opens_at = NULL
    RETURNING lane.key, lane.turn, lane.rank, lane.task_seq, lane.closed
)
