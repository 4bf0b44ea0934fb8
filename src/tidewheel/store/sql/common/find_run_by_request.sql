-- Run: the one that was made for this request.
SELECT number FROM tidewheel.run WHERE request = :request AND status <> 'deleted';
