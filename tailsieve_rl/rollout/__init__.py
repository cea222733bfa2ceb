"""The verl binding: trainer mode `tailsieve`, the coordinator of the running step, client, agent loops, sampler."""
