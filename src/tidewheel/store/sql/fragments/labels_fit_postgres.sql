-- Claim on PostgreSQL: the worker has every label that a ready task asks for, and the nodes of each flavour.
(ready.labels IS NULL OR ready.labels::jsonb <@ :labels::jsonb)
       AND (ready.flavours IS NULL OR NOT EXISTS (
                SELECT 1 FROM jsonb_array_elements(ready.flavours::jsonb) AS asked (one)
                  LEFT JOIN jsonb_array_elements(:flavours::jsonb) AS offered (one) ON offered.one ->> 0 = asked.one ->> 0
                 WHERE (asked.one ->> 1)::bigint > coalesce((offered.one ->> 1)::bigint, 0)
                    OR (asked.one ->> 2)::bigint > coalesce((offered.one ->> 2)::bigint, 0)))
