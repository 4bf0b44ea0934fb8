-- Configure: keyed tasks of a queue stand in lanes, or do not any more.
UPDATE tidewheel.ready SET laned = :laned
 WHERE queue = :queue AND delayed IN (false, true) AND laned <> :laned AND limit_key IS NOT NULL;
