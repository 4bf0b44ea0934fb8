-- Arm: nothing but dependencies holds it back from now on.
UPDATE task SET armed = true, updated_at = now_seconds() WHERE seq = :seq;
