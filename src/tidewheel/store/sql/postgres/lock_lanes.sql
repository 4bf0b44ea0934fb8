-- Configure: nobody is about to add a task or to end a lease who does not know yet that the queue has lanes.
LOCK TABLE tidewheel.ready, tidewheel.lease IN SHARE ROW EXCLUSIVE MODE;
