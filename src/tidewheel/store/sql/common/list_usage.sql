-- Usage: the series of a task.
SELECT attempt, at, memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes FROM tidewheel.usage
 WHERE task_seq = :seq ORDER BY seq;
