-- Claim with aging: the priorities, up to 255, of which there are tasks; a few steps of the index for each.
WITH RECURSIVE found (laned, rank) AS (
    SELECT laned, (SELECT min(ready.rank) FROM tidewheel.ready
                    WHERE ready.queue = :queue AND ready.delayed = false AND ready.laned = kind.laned
                      AND ready.rank >= -255)
      FROM (SELECT false AS laned UNION ALL SELECT true) AS kind
    UNION ALL
    SELECT laned, (SELECT min(ready.rank) FROM tidewheel.ready
                    WHERE ready.queue = :queue AND ready.delayed = false AND ready.laned = found.laned
                      AND ready.rank > found.rank)
      FROM found
     WHERE found.rank IS NOT NULL
)
SELECT DISTINCT rank FROM found WHERE rank IS NOT NULL ORDER BY rank;
