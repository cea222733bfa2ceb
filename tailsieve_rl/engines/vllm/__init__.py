"""vLLM as a rollout engine: verl's server with a verified abort, exact stops, statistics, and CPU support."""
