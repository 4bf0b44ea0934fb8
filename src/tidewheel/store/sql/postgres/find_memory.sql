-- Scheduler: what is known of one task, forgotten or not.
SELECT submits, body FROM tidewheel.memory WHERE run = %(run)s AND point = %(point)s AND name = %(name)s;
