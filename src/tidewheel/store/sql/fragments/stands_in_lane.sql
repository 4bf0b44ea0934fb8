-- Lanes: a ready task is one of the lane's key. The primary key, which the planner might prefer, has no order by such a cast.
ready.queue = :queue AND ready.limit_key = lane.key AND ready.laned AND ready.delayed::integer = 0
