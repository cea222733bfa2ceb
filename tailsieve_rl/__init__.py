"""TailSieve: partial-rollout-guided tail routing for synchronous LLM rollouts, on verl and vLLM."""

__version__ = "0.1.0"
