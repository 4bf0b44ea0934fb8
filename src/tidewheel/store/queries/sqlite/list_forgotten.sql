-- Looking: what a run has forgotten, newest points first.
SELECT body FROM memory WHERE run = :run AND forgotten ORDER BY point DESC, name LIMIT :count;
