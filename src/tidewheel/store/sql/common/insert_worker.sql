-- Worker: a number of its own from the shared sequence.
INSERT INTO tidewheel.worker (name, host, boot_id, pid, process_started, queues, slots, cpu, memory_bytes, gpu,
                    labels, nodes, buffer_bytes, flavours, abilities, registered_at, seen_at)
VALUES (:name, :host, :boot_id, :pid, :process_started, :queues, :slots, :cpu, :memory_bytes, :gpu,
        :labels, :nodes, :buffer_bytes, :flavours, :abilities, tidewheel.now_seconds(), tidewheel.now_seconds())
RETURNING number;
