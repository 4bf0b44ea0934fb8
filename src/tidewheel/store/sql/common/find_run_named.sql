-- Find: a run by its whole name; also one that is being deleted, as its name is taken.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE name = :name;
