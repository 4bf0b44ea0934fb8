-- Registry: a name and a version for a definition; what is there stays as it is.
INSERT INTO tidewheel.workflow (name, version, definition, runnable, findings, parameters, registered_at, registered_by)
VALUES (%(name)s, %(version)s, %(definition)s, %(runnable)s, %(findings)s, %(parameters)s, tidewheel.now_seconds(), %(registered_by)s)
    ON CONFLICT (name, version) DO NOTHING
RETURNING name, version;
