-- Arm, remove edges: how the edges into one task stand.
SELECT state FROM dependency WHERE child = :child;
