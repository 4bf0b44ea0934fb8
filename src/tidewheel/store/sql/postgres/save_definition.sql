-- Run: keep a definition under its digest; one that is there stays as it is, and stays longer.
INSERT INTO tidewheel.definition (digest, workflow, kind, text, variables, files, saved_at)
VALUES (%(digest)s, %(workflow)s, %(kind)s, %(text)s, %(variables)s, %(files)s, tidewheel.now_seconds())
    ON CONFLICT (digest) DO UPDATE SET saved_at = excluded.saved_at;
