-- Registry: a name and a version for a definition; what is there stays as it is.
INSERT INTO tidewheel.workflow (name, version, definition, runnable, findings, parameters, registered_at, registered_by, sees, source)
VALUES (:name, :version, :definition, :runnable, :findings, :parameters, tidewheel.now_seconds(), :registered_by, :sees, :source)
    ON CONFLICT (name, version) DO NOTHING
RETURNING name, version;
