-- Report: what jobs used.
INSERT INTO usage (task_seq, attempt, at, memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes)
SELECT value ->> 'seq', value ->> 'attempt', now_seconds(), value ->> 'memory_bytes',
       value ->> 'cpu_percent', value ->> 'gpu_percent', value ->> 'gpu_memory_bytes'
  FROM json_each(:samples);
