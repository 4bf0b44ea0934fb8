-- Submit, add edges: every edge below these tasks, to look for circles.
-- OFFSET 0, subqueries and "= ANY (ARRAY[…])" keep the planner to the keys: what it believes of
-- tables that were just filled is wrong, and in another order this walk takes its length squared.
WITH RECURSIVE below (seq) AS (
    SELECT unnest(:seqs::bigint[])
    UNION
    SELECT edge.child
      FROM below CROSS JOIN LATERAL
           (SELECT child FROM tidewheel.dependency WHERE parent = ANY (ARRAY[below.seq]) OFFSET 0) AS edge
)
SELECT (SELECT id FROM tidewheel.task WHERE seq = edge.parent),
       (SELECT id FROM tidewheel.task WHERE seq = edge.child)
  FROM below CROSS JOIN LATERAL
       (SELECT DISTINCT parent, child FROM tidewheel.dependency
         WHERE parent = ANY (ARRAY[below.seq]) OFFSET 0) AS edge;
