-- Submit, claim, verify: what decides who may claim a task; `ready` has a copy of it.
cpu, memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, flavours, handler, limit_key
