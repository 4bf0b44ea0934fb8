-- Arm: nothing but dependencies holds it back from now on.
UPDATE tidewheel.task SET armed = true, updated_at = tidewheel.now_seconds() WHERE seq = :seq;
