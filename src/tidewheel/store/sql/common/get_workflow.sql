-- Registry: one version of one workflow.
SELECT w.name, w.version, w.definition, d.kind, w.runnable, w.findings, w.parameters, w.registered_at, w.registered_by, w.sees, w.source
  FROM tidewheel.workflow w
  JOIN tidewheel.definition d ON d.digest = w.definition
 WHERE w.name = :name AND w.version = :version;
