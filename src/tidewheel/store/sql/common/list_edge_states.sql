-- Arm, remove edges: how the edges into one task stand.
SELECT state FROM tidewheel.dependency WHERE child = :child;
