-- Configure: keyed tasks of a queue stand in lanes, or do not any more; a row for each that was moved.
UPDATE tidewheel.ready SET laned = :laned
 WHERE queue = :queue AND delayed IN (false, true) AND laned <> :laned AND limit_key IS NOT NULL
RETURNING 1;
