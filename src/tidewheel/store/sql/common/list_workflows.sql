-- Registry: all versions of one workflow, or of all.
SELECT w.name, w.version, w.definition, d.kind, w.runnable, w.findings, w.parameters, w.registered_at, w.registered_by, w.sees, w.source
  FROM tidewheel.workflow w
  JOIN tidewheel.definition d ON d.digest = w.definition
 WHERE (:name::text IS NULL OR w.name = :name::text)
 ORDER BY w.name COLLATE "C", w.version COLLATE "C"
 LIMIT :count;
