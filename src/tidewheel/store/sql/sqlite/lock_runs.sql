-- Cascade, claim by id: runs stand still from here on, with their statuses.
SELECT number, status FROM run
 WHERE number IN (SELECT value FROM json_each(:runs))
 ORDER BY number;
