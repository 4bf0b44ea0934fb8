-- Run: the highest N of the runs called PREFIX followed by N; 0 if there is none.
SELECT coalesce(max(CAST(substr(name, length(:prefix) + 1) AS INTEGER)), 0)
  FROM run
 WHERE substr(name, 1, length(:prefix)) = :prefix
   AND length(name) BETWEEN length(:prefix) + 1 AND length(:prefix) + 9
   AND substr(name, length(:prefix) + 1) NOT GLOB '*[^0-9]*';
