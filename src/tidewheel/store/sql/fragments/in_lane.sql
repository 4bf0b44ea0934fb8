-- Submit, cascade: a task that becomes ready stands in the lane of its key, if its queue has lanes.
limit_key IS NOT NULL
           AND EXISTS (SELECT 1 FROM tidewheel.queue AS its WHERE its.name = queue AND its.lanes)
