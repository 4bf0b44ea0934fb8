-- Configure: all settings of a queue.
INSERT INTO tidewheel.queue (name, paused, aging, fair, fence_kill, lease_seconds, lanes)
VALUES (:queue, :paused, :aging, :fair, :fence_kill, :lease_seconds, :lanes)
    ON CONFLICT (name) DO UPDATE
   SET paused = excluded.paused, aging = excluded.aging, fair = excluded.fair, fence_kill = excluded.fence_kill,
       lease_seconds = excluded.lease_seconds, lanes = excluded.lanes, turns = 0;
