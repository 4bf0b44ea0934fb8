-- Retention: definitions last saved long ago that neither a run nor the registry names.
-- Their age is asked twice: one that is saved again at this moment stays.
WITH unnamed AS (SELECT digest FROM definition
                 EXCEPT SELECT definition FROM run
                 EXCEPT SELECT definition FROM workflow)
DELETE FROM definition
 WHERE saved_at < now_seconds() - :retention_seconds
   AND digest IN (
           SELECT digest FROM unnamed JOIN definition USING (digest)
            WHERE saved_at < now_seconds() - :retention_seconds
            ORDER BY digest LIMIT :count)
RETURNING digest;
