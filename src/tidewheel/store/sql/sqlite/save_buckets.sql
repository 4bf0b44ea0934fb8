-- Claim under limits: starts were taken.
INSERT INTO bucket (queue, key, tokens, refilled_at)
SELECT :queue, value ->> 'key', value ->> 'tokens', value ->> 'refilled_at'
  FROM json_each(:buckets)
 WHERE true
    ON CONFLICT (queue, key) DO UPDATE
   SET tokens = excluded.tokens, refilled_at = excluded.refilled_at;
