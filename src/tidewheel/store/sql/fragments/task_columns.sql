-- Submit, look: what a client said of a task, and the status.
id, spec, {said_columns}
