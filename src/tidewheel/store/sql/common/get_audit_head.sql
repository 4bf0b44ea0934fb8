-- Verify: the last entry by the head and by the table, of one moment.
SELECT begins, number, sha256, (SELECT coalesce(max(number), 0) FROM tidewheel.audit) AS newest
  FROM tidewheel.audit_head;
