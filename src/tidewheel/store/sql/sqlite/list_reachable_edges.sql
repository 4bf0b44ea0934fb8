-- Submit, add edges: every edge below these tasks, to look for circles.
WITH RECURSIVE below (seq) AS (
    SELECT value FROM json_each(:seqs)
    UNION
    SELECT dependency.child FROM below JOIN dependency ON dependency.parent = below.seq
)
SELECT DISTINCT parent.id, child.id
  FROM below
  JOIN dependency ON dependency.parent = below.seq
  JOIN task AS parent ON parent.seq = dependency.parent
  JOIN task AS child ON child.seq = dependency.child;
