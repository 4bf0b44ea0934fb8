-- Submit, add edges: tasks enter a graph.
UPDATE task SET graph = value ->> 'graph'
  FROM json_each(:tasks)
 WHERE task.seq = value ->> 'seq';
