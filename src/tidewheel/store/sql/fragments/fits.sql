-- Claim: a ready task fits into what is free, and the worker can execute it; its labels and flavours apart.
ready.cpu <= :cpu AND ready.memory_bytes <= :memory_bytes AND ready.gpu <= :gpu
       AND ready.buffer_bytes <= :buffer_bytes
       AND ready.nodes <= CASE WHEN ready.exclusive AND ready.flavours IS NULL THEN coalesce(:idle_nodes::bigint, :nodes)
                                ELSE :nodes END
       AND (NOT ready.has_command OR :commands::boolean
            OR replace(ready.labels, '"runner:', '') <> ready.labels)
       AND (ready.has_command OR ready.handler IS NOT NULL OR :bare::boolean)
       AND (ready.handler IS NULL OR :any_handler::boolean
            OR ready.handler = ANY (:handlers::text[]))
