"""Prepare GSM8K for verl: prompts in the paper's form, and a model of demonstration size to run them with.

    python examples/gsm8k/prepare.py --out outputs/gsm8k

writes OUT/train.parquet, OUT/val.parquet and OUT/model in a few seconds, the same files every time. The problems are
the first 256 of GSM8K's training split and the first 64 of its test split, shipped here with their licence (MIT,
LICENSE); `--train` and `--test` take the whole splits, in the same JSON lines. Other data sets, and this one from the
hub, are made by `tailsieve data`.

The model is a Qwen3 of random weights with a byte-level tokenizer trained on the shipped text: real prompts at real
lengths through the whole pipeline, no answers. Point `actor_rollout_ref.model.path` at a model that can count instead.
Score with `reward.custom_reward_function.path=pkg://tailsieve_rl.algorithms.math_reward`.
"""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

from tailsieve_rl.data.catalogue import named
from tailsieve_rl.data.prepared import MAX_PROMPT_TOKENS, Prepared, read_split
from tailsieve_rl.data.sources import local_rows
from tailsieve_rl.input_error import InputError

HERE = Path(__file__).resolve().parent
SAMPLE_TRAIN, SAMPLE_TEST = HERE / "sample_train.jsonl", HERE / "sample_test.jsonl"

VOCABULARY = 1536
END_OF_TEXT, TURN_BEGIN, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on the shipped training problems and their solutions."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT, TURN_BEGIN, TURN_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    rows = [json.loads(line) for line in SAMPLE_TRAIN.read_text(encoding="utf-8").splitlines()]
    prompts = [named("gsm8k").read(row).messages[0]["content"] for row in rows]
    texts = (prompt + "\n" + row["answer"] for prompt, row in zip(prompts, rows, strict=True))
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_BEGIN],
        padding_side="left",
        model_max_length=32768,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return a random model whose vocabulary is exactly the tokenizer's (vLLM masks logits beyond it)."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def prepare(out: Path, model_out: Path, train: Path, test: Path) -> None:
    """Write the prompts and the model."""
    transformers_logging.disable_progress_bar()
    tokenizer = train_tokenizer()

    def read(split: str, path: Path) -> Prepared:
        return read_split(named("gsm8k"), split, str(path), local_rows(path), tokenizer, MAX_PROMPT_TOKENS)

    for name, prompts in [("train", read("train", train)), ("val", read("test", test))]:
        path = out / f"{name}.parquet"
        prompts.write(path)
        print(path, *prompts.report(), sep="\n  ")
    model = build_model(tokenizer)
    model.save_pretrained(model_out)
    tokenizer.save_pretrained(model_out)
    print(f"{model_out}: random model, {model.num_parameters():,} parameters, vocabulary of {len(tokenizer)}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Prepare GSM8K prompts in verl's format, and a random model of demonstration size.",
        epilog="example: python examples/gsm8k/prepare.py --out outputs/gsm8k",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--model-out", type=Path, help="folder of the model (OUT/model)")
    parser.add_argument("--train", type=Path, default=SAMPLE_TRAIN, help="problems to train on (256 shipped ones)")
    parser.add_argument("--test", type=Path, default=SAMPLE_TEST, help="problems to validate on (64 shipped ones)")
    args = parser.parse_args()
    try:
        prepare(args.out, args.model_out or args.out / "model", args.train, args.test)
    except (InputError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
