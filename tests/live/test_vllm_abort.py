"""Our vLLM server on a real tiny CPU engine: aborts are verified, stops are exact, sampling parameters arrive."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

LONG = 400
PROMPT = [5, 6, 7, 8]


def build_model(folder: Path) -> None:
    """A random Qwen3 whose vocabulary is the 256 bytes and three special tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=512,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder)


def verl_config(model: Path) -> Any:
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
                f"{rollout}.max_model_len=512",
                f"{rollout}.max_num_seqs=32",
                f"{rollout}.max_num_batched_tokens=2048",
                f"++{rollout}.engine_kwargs.vllm.speculative_config.method=ngram",
            ][:-1],
        )


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def server(loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """The server class itself, without an actor around it, so that tests can look into its engine."""
    import os

    os.environ.setdefault("VERL_USE_EXTERNAL_MODULES", "tailsieve_rl.plugin")
    import ray
    from verl.workers.rollout.replica import RolloutMode

    from tailsieve_rl.engines.vllm.server import TailSieveVLLMServer

    folder = Path(tempfile.mkdtemp(prefix="ts", dir="/tmp"))
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(folder / "ray"), logging_level="ERROR")
    try:
        build_model(folder / "model")
        config = verl_config(folder / "model").actor_rollout_ref

        async def start() -> Any:
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
            await server.set_global_steps(7)
            return server

        server = loop.run_until_complete(start())
        yield server
        server.engine.shutdown()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def test_smoke(server, loop):
    async def go():
        out = await server.generate(PROMPT, {"temperature": 1.0, "ignore_eos": True, "max_tokens": 20, "logprobs": True}, "a")
        print(out)
        print(server.engine.vllm_config.cache_config.block_size, server.engine.vllm_config.cache_config.num_gpu_blocks)
        print(await server.stats(), await server.ping())
    loop.run_until_complete(go())
