-- Claim by id, adopt, claim along with a write: what is to be known of the worker and the queue.
SELECT {plan_columns}
  FROM (SELECT 1) AS one LEFT JOIN tidewheel.queue ON queue.name = :queue;
