-- Looking: what a run has forgotten, newest points first.
SELECT body FROM tidewheel.memory WHERE run = %(run)s AND forgotten ORDER BY point DESC, name LIMIT %(count)s;
