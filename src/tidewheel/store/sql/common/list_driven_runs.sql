-- Objects: runs of definitions that may wait for some, and that somebody drives.
SELECT run.number FROM tidewheel.run AS run JOIN tidewheel.definition AS definition ON definition.digest = run.definition
 WHERE definition.kind = :kind AND run.deadline_at > tidewheel.now_seconds();
