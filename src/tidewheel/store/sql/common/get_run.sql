-- Everybody: a run by its number.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE number = :run AND status <> 'deleted';
