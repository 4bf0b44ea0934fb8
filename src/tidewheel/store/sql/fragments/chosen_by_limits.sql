-- Claim by rules: the candidates that the limits of their keys allow, in the order of their aged priority.
numbered AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes, limit_key, aged,
           row_number() OVER (PARTITION BY limit_key ORDER BY aged DESC, task_seq) AS of_key
      FROM candidate
), chosen AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes,
           row_number() OVER (ORDER BY aged DESC, task_seq) AS place
      FROM numbered
     WHERE limit_key IS NULL
        OR of_key <= coalesce(
               (SELECT rule.count
                  FROM json_to_recordset(:by_key::json) AS rule (key text, count integer)
                 WHERE rule.key = limit_key), :each_key)
     ORDER BY place
     LIMIT :count
)
