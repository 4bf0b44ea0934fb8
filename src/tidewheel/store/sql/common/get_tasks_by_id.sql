-- Everybody who looks, servers for many requests at once: tasks as people see them.
{task_view}
 WHERE task.id = ANY (:ids::text[]);
