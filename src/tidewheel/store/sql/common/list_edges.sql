-- Edges, resubmission: into and out of tasks.
SELECT parent.id AS parent, child.id AS child, dependency.output, dependency.state
  FROM tidewheel.dependency
  JOIN tidewheel.task AS parent ON parent.seq = dependency.parent
  JOIN tidewheel.task AS child ON child.seq = dependency.child
 WHERE dependency.parent = ANY (:seqs::bigint[]) OR dependency.child = ANY (:seqs::bigint[])
 ORDER BY dependency.parent, dependency.child, dependency.output;
