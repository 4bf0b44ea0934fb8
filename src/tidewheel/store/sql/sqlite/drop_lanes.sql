-- Claim by rules: keys of which nothing is ready have no lane.
DELETE FROM lane
 WHERE key IN (SELECT value FROM json_each(:keys)) AND queue = :queue
   AND NOT EXISTS (SELECT 1 FROM ready INDEXED BY ready_lane
                    WHERE {stands_in_lane});
