-- Worker: a number of its own from the shared sequence.
INSERT INTO tidewheel.worker (name, host, boot_id, pid, process_started, queues, slots, cpu, memory_bytes, gpu,
                    labels, nodes, buffer_bytes, abilities, registered_at, seen_at)
VALUES (%(name)s, %(host)s, %(boot_id)s, %(pid)s, %(process_started)s, %(queues)s, %(slots)s, %(cpu)s, %(memory_bytes)s, %(gpu)s,
        %(labels)s, %(nodes)s, %(buffer_bytes)s, %(abilities)s, tidewheel.now_seconds(), tidewheel.now_seconds())
RETURNING number;
