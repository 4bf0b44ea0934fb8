-- Run: the one that was made for this request.
SELECT number FROM run WHERE request = :request AND status <> 'deleted';
