-- Verify P17: submit numbers of a task of a run grow, and belong to its run.
WITH submission AS (
    SELECT task.seq, task.id, run.name AS run_name, rtrim(task.id, '0123456789') AS stem,
           coalesce(nullif(right(substr(task.id, length(rtrim(task.id, '0123456789')) + 1), 18),
                           ''), '0')::bigint AS submit
      FROM tidewheel.task LEFT JOIN tidewheel.run ON run.number = task.run
     WHERE task.run IS NOT NULL
), placed AS (
    SELECT seq, id, run_name, stem, submit,
           lag(submit, 1, 0::bigint) OVER (PARTITION BY stem ORDER BY seq) AS before
      FROM submission
)
SELECT id, CASE WHEN run_name IS NULL THEN 'a submission of a run that is not there'
                WHEN NOT starts_with(id, run_name || '/')
                  OR right(stem, 1) <> '/' THEN 'the id is not one of run ' || run_name
                ELSE 'submit number ' || submit || ' comes after ' || before END
  FROM placed
 WHERE run_name IS NULL OR NOT starts_with(id, run_name || '/')
    OR right(stem, 1) <> '/' OR submit <= before
 ORDER BY seq;
