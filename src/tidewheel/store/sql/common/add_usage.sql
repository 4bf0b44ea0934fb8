-- Report: what jobs used.
INSERT INTO tidewheel.usage
       (task_seq, attempt, at, memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes)
SELECT seq, attempt, tidewheel.now_seconds(), memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes
  FROM json_to_recordset(:samples::json) AS used (
           seq bigint, attempt integer, memory_bytes bigint, cpu_percent float8, gpu_percent float8,
           gpu_memory_bytes bigint);
