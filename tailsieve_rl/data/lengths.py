"""Prompt lengths in tokens, as verl counts them: chat template and generation prompt included."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailsieve_rl.data.templates import Messages
from tailsieve_rl.input_error import InputError

TEMPLATE_ARGUMENTS = {"enable_thinking": False}
"""The paper's runs have thinking off (table A.1); a chat template that does not know the argument ignores it."""


def load_tokenizer(path: str) -> Any:
    """The tokenizer of a model's folder, or of a model on the hub.

    Raises:
        InputError: if there is none, or none with a chat template.
    """
    import transformers

    if path.startswith(("/", ".")) and not Path(path).is_dir():
        raise InputError(f"{path}: no such folder")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    except Exception as error:  # whatever a hub, a file system or a tokenizer's own code raises
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: no tokenizer can be loaded from it: {reason}") from None
    if not tokenizer.chat_template:
        raise InputError(f"{path}: the tokenizer has no chat template, so prompts cannot be made from messages")
    return tokenizer


def prompt_tokens(tokenizer: Any, prompts: Sequence[Messages]) -> list[int]:
    """Tokens of each prompt."""
    if not prompts:
        return []
    texts = tokenizer.apply_chat_template(
        list(prompts), add_generation_prompt=True, tokenize=False, **TEMPLATE_ARGUMENTS
    )
    return [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
