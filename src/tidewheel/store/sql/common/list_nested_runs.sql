-- Delete: the runs that are tasks of this one, also those whose deletion was interrupted.
SELECT number FROM tidewheel.run WHERE parent = :run ORDER BY number LIMIT :count;
