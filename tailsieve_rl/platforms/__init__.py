"""What makes verl and vLLM run on a machine without an accelerator."""
