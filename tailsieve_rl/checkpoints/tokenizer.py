"""A tokenizer of bytes, for models that are made and not downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PAD, END = "<|endoftext|>", "<|im_end|>"
SPECIAL = (PAD, "<|im_start|>", END)
BYTES = 256
VOCABULARY = BYTES + len(SPECIAL)


def byte_tokenizer(chat_template: str | None = CHAT_TEMPLATE) -> Any:
    """A fast tokenizer of VOCABULARY tokens: ids below BYTES are the bytes, the special tokens follow."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, chat_template=chat_template
    )


def write_tokenizer(folder: Path, chat_template: str | None = CHAT_TEMPLATE) -> Any:
    """Save it in `folder`, and return it."""
    tokenizer = byte_tokenizer(chat_template)
    tokenizer.save_pretrained(folder)
    return tokenizer
