-- Retention: definitions last saved long ago that no run has or had, nor the registry names.
-- Their age is asked twice: one that is saved again at this moment stays.
WITH unnamed AS (SELECT digest FROM tidewheel.definition
                 EXCEPT SELECT definition FROM tidewheel.run
                 EXCEPT SELECT definition FROM tidewheel.run_version
                 EXCEPT SELECT definition FROM tidewheel.workflow)
DELETE FROM tidewheel.definition
 WHERE saved_at < tidewheel.now_seconds() - :retention_seconds
   AND digest IN (
           SELECT digest FROM unnamed JOIN tidewheel.definition USING (digest)
            WHERE saved_at < tidewheel.now_seconds() - :retention_seconds
            ORDER BY digest LIMIT :count)
RETURNING digest;
