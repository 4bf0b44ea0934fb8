-- Verify: the statuses of a run in which nothing of it may be claimed (WITHDRAWN_STATUSES).
'stopping', 'stopped', 'completed', 'error'
