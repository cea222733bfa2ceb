"""Where a job's configuration tells vLLM servers what their replicas draft with."""

ENGINE_KEY = "tailsieve_speculation"
"""Under `rollout.engine_kwargs.vllm`; see rollout.speculation.engine_speculation for what is in it."""
