-- Run: keep a definition under its digest; one that is there stays as it is.
INSERT INTO tidewheel.definition (digest, workflow, kind, text, variables, files, saved_at)
VALUES (%(digest)s, %(workflow)s, %(kind)s, %(text)s, %(variables)s, %(files)s, tidewheel.now_seconds())
    ON CONFLICT (digest) DO NOTHING;
