-- Services: let go of a notebook, so that the next one need not wait.
UPDATE tidewheel.notebook SET owner = NULL, deadline_at = NULL
 WHERE name = :name AND epoch = :epoch;
