-- Run, looking: a definition as it was saved.
SELECT digest, workflow, kind, text, variables, files FROM tidewheel.definition WHERE digest = :digest;
