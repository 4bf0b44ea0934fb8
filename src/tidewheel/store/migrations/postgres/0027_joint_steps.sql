-- A step that many tasks make together is one row (PostgreSQL): a worker claims hundreds at once, and tells of as many successes.
-- `step` has every step, whichever way it is stored; steps that were stored before stay where they are.

-- Append-only. A task finds its own by the attempt, followers of the store by (xid, seq), as those of history.
CREATE TABLE tidewheel.joint_step (
    seq bigint NOT NULL DEFAULT nextval('tidewheel.history_seq_seq'),  -- the first task's place; those of the others follow
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at double precision NOT NULL,
    signal text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    worker text NOT NULL,
    progress double precision NOT NULL,
    task_seqs bigint[] NOT NULL,
    attempts integer[] NOT NULL,  -- of each of these tasks
    PRIMARY KEY (xid, seq),
    CHECK (cardinality(task_seqs) BETWEEN 1 AND 16384 AND cardinality(attempts) = cardinality(task_seqs)),
    CHECK (from_status || ' ' || signal || ' ' || to_status IN ('ready claim running', 'running succeed succeeded'))
);

CREATE UNIQUE INDEX joint_step_seq ON tidewheel.joint_step (seq);
CREATE INDEX joint_step_ended ON tidewheel.joint_step (at) WHERE to_status = 'succeeded';

ALTER SEQUENCE tidewheel.history_seq_seq INCREMENT BY 16384;  -- so many tasks have places in one step

ALTER TABLE tidewheel.lease ADD COLUMN claim_seq bigint;  -- of the joint step; null: it is in history
ALTER TABLE tidewheel.attempt ADD COLUMN claim_seq bigint, ADD COLUMN end_seq bigint;  -- the same

CREATE VIEW tidewheel.step AS
SELECT seq, task_seq, at, signal, from_status, to_status, attempt, worker, progress
  FROM tidewheel.history
 UNION ALL
SELECT joint.seq, past.task_seq, joint.at, joint.signal, joint.from_status, joint.to_status, past.attempt, joint.worker, joint.progress
  FROM tidewheel.attempt AS past JOIN tidewheel.joint_step AS joint ON joint.seq = past.claim_seq
 UNION ALL
SELECT joint.seq, past.task_seq, joint.at, joint.signal, joint.from_status, joint.to_status, past.attempt, joint.worker, joint.progress
  FROM tidewheel.attempt AS past JOIN tidewheel.joint_step AS joint ON joint.seq = past.end_seq
 UNION ALL
SELECT joint.seq, lease.task_seq, joint.at, joint.signal, joint.from_status, joint.to_status, lease.attempt, joint.worker, joint.progress
  FROM tidewheel.lease JOIN tidewheel.joint_step AS joint ON joint.seq = lease.claim_seq;

-- A joint step goes with the last of its tasks. What a follower can no longer be told of counts from the first that goes.
CREATE FUNCTION tidewheel.forget_joint_steps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    concerned bigint[] := ARRAY(
        SELECT past.claim_seq FROM gone JOIN tidewheel.attempt AS past ON past.task_seq = gone.seq
         UNION
        SELECT past.end_seq FROM gone JOIN tidewheel.attempt AS past ON past.task_seq = gone.seq
         UNION
        SELECT lease.claim_seq FROM gone JOIN tidewheel.lease ON lease.task_seq = gone.seq);
BEGIN
    INSERT INTO tidewheel.event_floor AS floor (xid, seq)
    SELECT xid, seq + cardinality(task_seqs) - 1
      FROM tidewheel.joint_step WHERE seq = ANY (concerned)
     ORDER BY xid DESC, seq DESC LIMIT 1
        ON CONFLICT (one) DO UPDATE SET xid = EXCLUDED.xid, seq = EXCLUDED.seq
     WHERE (floor.xid, floor.seq) < (EXCLUDED.xid, EXCLUDED.seq);
    DELETE FROM tidewheel.joint_step
     WHERE seq = ANY (concerned)
       AND NOT EXISTS (SELECT 1 FROM tidewheel.task WHERE task.seq = ANY (joint_step.task_seqs));
    RETURN NULL;
END $$;

CREATE TRIGGER task_is_deleted AFTER DELETE ON tidewheel.task
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.forget_joint_steps();

-- Room for the three versions of a task that is claimed and succeeds: no page is tidied for them.
ALTER TABLE tidewheel.task SET (fillfactor = 33);
