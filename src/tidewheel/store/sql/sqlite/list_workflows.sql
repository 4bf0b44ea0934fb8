-- Registry: all versions of one workflow, or of all.
SELECT w.name, w.version, w.definition, d.kind, w.runnable, w.findings, w.parameters, w.registered_at, w.registered_by
  FROM workflow w
  JOIN definition d ON d.digest = w.definition
 WHERE (:name IS NULL OR w.name = :name)
 ORDER BY w.name, w.version
 LIMIT :count;
