-- Workers: each with what it holds, newest first.
SELECT 'worker-' || number AS id, name, host, boot_id, pid, process_started, queues, slots, cpu,
       memory_bytes, gpu, labels, nodes, false AS exclusive, buffer_bytes, flavours, coalesce(held.leases, 0) AS leases, registered_at, seen_at,
       stopped_at,
       trouble, abilities
  FROM tidewheel.worker
  LEFT JOIN (SELECT owner, count(*) AS leases FROM tidewheel.lease GROUP BY owner) AS held
    ON held.owner = 'worker-' || number
 WHERE stopped_at IS NULL OR NOT :live_only::boolean
 ORDER BY number DESC;
