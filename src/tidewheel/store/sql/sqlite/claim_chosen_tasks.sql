-- Claim: tasks that were chosen by the rules of their queue, as many of the first as fit together.
WITH chosen AS MATERIALIZED (
    SELECT line.key AS place, ready.task_seq, ready.cpu, ready.memory_bytes, ready.gpu, ready.exclusive,
           ready.buffer_bytes
      FROM json_each(:chosen) AS line CROSS JOIN ready
     WHERE ready.queue = :queue AND ready.delayed = 0 AND ready.laned = line.value ->> 'laned'
       AND ready.rank = line.value ->> 'rank' AND ready.task_seq = line.value ->> 'seq'
), {take_chosen};
