"""What a rollout needs beside engines: prompts, and a tokenizer where the engines have no model."""

from __future__ import annotations

from pathlib import Path


def write_prompts(folder: Path, count: int) -> str:
    """A parquet file of short prompts, in verl's columns. What they ask for does not matter: lengths are forced.

    Returns:
        Its path.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "prompt": [{"role": "user", "content": f"Problem {i}."}],
            "data_source": "bench",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": i},
        }
        for i in range(count)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "prompts.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def write_tokenizer(folder: Path) -> str:
    """A folder that verl takes for a model's: a tokenizer of bytes with a chat template, and a configuration.

    Returns:
        Its path.
    """
    from transformers import Qwen3Config

    from tailsieve_rl.checkpoints.tokenizer import write_tokenizer as write_bytes

    path = folder / "no_model"
    bytes_only = write_bytes(path)
    config = Qwen3Config(
        vocab_size=len(bytes_only), eos_token_id=bytes_only.eos_token_id, pad_token_id=bytes_only.pad_token_id
    )
    config.architectures = ["Qwen3ForCausalLM"]
    config.save_pretrained(path)
    return str(path)
