"""A tiny random Qwen3 and our vLLM server on it, as live tests use them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

MAX_MODEL_LEN = 512
MAX_NUM_SEQS = 32
MAX_NUM_BATCHED_TOKENS = 2048
WEIGHTS = 7
"""Weight version that the server reports."""


def build_model(folder: Path) -> None:
    """A random Qwen3 whose vocabulary is the 256 bytes and three special tokens."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from tailsieve_rl.checkpoints.tokenizer import write_tokenizer

    tokenizer = write_tokenizer(folder, chat_template=None)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=MAX_MODEL_LEN,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder)


def verl_config(model: Path, *overrides: str) -> Any:
    from hydra import compose, initialize_config_module

    rollout = "actor_rollout_ref.rollout"
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={model}",
                f"{rollout}.name=vllm",
                f"{rollout}.tensor_model_parallel_size=1",
                f"{rollout}.dtype=float32",
                f"{rollout}.enforce_eager=true",
                f"{rollout}.free_cache_engine=false",
                f"++{rollout}.enable_sleep_mode=false",
                f"{rollout}.load_format=auto",
                f"{rollout}.max_model_len={MAX_MODEL_LEN}",
                f"{rollout}.max_num_seqs={MAX_NUM_SEQS}",
                f"{rollout}.max_num_batched_tokens={MAX_NUM_BATCHED_TOKENS}",
                *overrides,
            ],
        )


async def start_server(model: Path, *overrides: str) -> Any:
    """The server class itself, without an actor around it, so that tests can look into its engine."""
    from verl.workers.rollout.replica import RolloutMode

    from tailsieve_rl.engines.vllm.server import TailSieveVLLMServer

    config = verl_config(model, *overrides).actor_rollout_ref
    server = TailSieveVLLMServer(
        config=config.rollout,
        model_config=config.model,
        rollout_mode=RolloutMode.STANDALONE,
        workers=[],
        replica_rank=0,
        node_rank=0,
        gpus_per_node=1,
        nnodes=1,
        cuda_visible_devices="0",
    )
    await server.launch_server()
    await server.set_global_steps(WEIGHTS)
    return server


@contextlib.contextmanager
def serving(loop: asyncio.AbstractEventLoop, *overrides: str, model: Path | None = None) -> Iterator[Any]:
    """A running server, of a random Qwen3 if not told otherwise, with overrides of verl's configuration.

    It needs no Ray, of which it only asks for a job id.
    """
    os.environ.setdefault("VERL_USE_EXTERNAL_MODULES", "tailsieve_rl.plugin")  # if the package is not installed
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # tests send functions to the engine's process
    job = SimpleNamespace(get_job_id=lambda: uuid.uuid4().hex[:8])
    with tempfile.TemporaryDirectory(prefix="ts") as folder, mock.patch("ray.get_runtime_context", lambda: job):
        if model is None:
            model = Path(folder) / "model"
            build_model(model)
        server = loop.run_until_complete(start_server(model, *overrides))
        try:
            yield server
        finally:
            server.engine.shutdown()
