"""What a rollout needs beside engines: prompts, and a tokenizer where the engines have no model."""

from __future__ import annotations

from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


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
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
    )
    path = folder / "no_model"
    fast.save_pretrained(path)
    config = Qwen3Config(vocab_size=len(fast), eos_token_id=fast.eos_token_id, pad_token_id=fast.pad_token_id)
    config.architectures = ["Qwen3ForCausalLM"]
    config.save_pretrained(path)
    return str(path)
