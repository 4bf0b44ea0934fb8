-- Claim under limits: starts were taken.
INSERT INTO tidewheel.bucket (queue, key, tokens, refilled_at)
SELECT :queue, key, tokens, refilled_at
  FROM json_to_recordset(:buckets::json) AS taken (key text, tokens float8, refilled_at float8)
 WHERE true
    ON CONFLICT (queue, key) DO UPDATE
   SET tokens = excluded.tokens, refilled_at = excluded.refilled_at;
