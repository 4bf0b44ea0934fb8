-- Configure: all settings of a queue.
INSERT INTO tidewheel.queue (name, paused, aging, fence_kill, lease_seconds)
VALUES (:queue, :paused, :aging, :fence_kill, :lease_seconds)
    ON CONFLICT (name) DO UPDATE
   SET paused = excluded.paused, aging = excluded.aging, fence_kill = excluded.fence_kill,
       lease_seconds = excluded.lease_seconds;
