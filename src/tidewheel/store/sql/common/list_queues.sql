-- Queues: every queue with settings.
SELECT name AS queue, paused, aging, fair, fence_kill, lease_seconds FROM tidewheel.queue ORDER BY name;
