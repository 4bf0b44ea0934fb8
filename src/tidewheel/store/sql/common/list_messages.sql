-- Outputs: what the jobs of a task said, in order.
SELECT attempt, number, at, text, output FROM tidewheel.output
 WHERE task_seq = :seq ORDER BY attempt, number;
