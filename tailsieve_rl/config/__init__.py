"""Typed settings: the only reader of the raw `trainer.v1.tailsieve` block."""
