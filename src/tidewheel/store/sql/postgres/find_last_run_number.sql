-- Run: the highest N of the runs called PREFIX followed by N; 0 if there is none.
SELECT coalesce(max(CASE WHEN substr(name, length(:prefix::text) + 1) ~ '^[0-9]{1,9}$'
                         THEN substr(name, length(:prefix::text) + 1)::bigint END), 0)
  FROM tidewheel.run
 WHERE starts_with(name, :prefix::text);
