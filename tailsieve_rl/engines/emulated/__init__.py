"""Emulated engines: they answer like a vLLM server, and decode by a decode model in compressed time."""
