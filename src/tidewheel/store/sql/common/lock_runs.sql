-- Cascade, claim by id: runs stand still from here on, with their statuses.
SELECT number, status FROM tidewheel.run
 WHERE number = ANY (:runs::bigint[])
 ORDER BY number
   FOR SHARE;
