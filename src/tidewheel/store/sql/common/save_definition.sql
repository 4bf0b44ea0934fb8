-- Run: keep a definition under its digest; one that is there stays as it is, and stays longer.
INSERT INTO tidewheel.definition (digest, workflow, kind, text, variables, files, saved_at)
VALUES (:digest, :workflow, :kind, :text, :variables, :files, tidewheel.now_seconds())
    ON CONFLICT (digest) DO UPDATE SET saved_at = excluded.saved_at;
