"""Prepare GSM8K for verl: prompts in the paper's form, and a model of demonstration size to run them with.

    python examples/gsm8k/prepare.py --out outputs/gsm8k

writes OUT/train.parquet, OUT/val.parquet and OUT/model in a few seconds, the same files every time. The problems are
the first 256 of GSM8K's training split and the first 64 of its test split, shipped here with their licence (MIT,
LICENSE); `--train` and `--test` take the whole splits, in the same JSON lines.

The model is a Qwen3 of random weights with a byte-level tokenizer trained on the shipped text: real prompts at real
lengths through the whole pipeline, no answers. Point `actor_rollout_ref.model.path` at a model that can count instead.
Score with `reward.custom_reward_function.path=pkg://tailsieve_rl.algorithms.math_reward`.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

HERE = Path(__file__).resolve().parent
SAMPLE_TRAIN, SAMPLE_TEST = HERE / "sample_train.jsonl", HERE / "sample_test.jsonl"

DATA_SOURCE = (
    "tailsieve/gsm8k"  # not "openai/gsm8k": verl's own rule for that name looks for "#### n" and would score 0
)
PROMPT_CAP = 512  # tokens, chat template included (paper, table A.1)
VOCABULARY = 1536

# The instruction to write \boxed{} is ours; the last two sentences are the paper's (A.1), as is the stop string <END>.
USER_MESSAGE = (
    "{question}\n\n"
    "Reason step by step, put the final answer, a number alone, in \\boxed{{}}, and then write <END>.\n"
    "After <END>, stop immediately. "
    "Do not write any words, punctuation, newline, or explanation after <END>."
)
END_OF_TEXT, TURN_BEGIN, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_TRUTH = re.compile(r"####\s*(-?[\d,]*\.?\d+)\s*$")


class BadProblem(ValueError):
    """A line of the input that is no GSM8K problem; the message names file and line."""


def read_problems(path: Path) -> list[dict[str, str]]:
    """Return each line's question and true answer (digits, no thousands separators)."""
    problems = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            match = _TRUTH.search(row["answer"])
            if match is None:
                raise ValueError("the answer does not end in '#### NUMBER'")
            problems.append({"question": str(row["question"]), "truth": match.group(1).replace(",", "")})
        except (ValueError, KeyError, TypeError) as error:
            raise BadProblem(f"{path}, line {number}: {type(error).__name__}: {error}") from error
    return problems


def user_message(question: str) -> str:
    """Return the prompt's single message."""
    return USER_MESSAGE.format(question=question)


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
    tokenizer.train_from_iterator((user_message(row["question"]) + "\n" + row["answer"] for row in rows), trainer)
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


def prompt_tokens(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> int:
    """Return a prompt's length in tokens, chat template included."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def write_prompts(problems: list[dict[str, str]], split: str, tokenizer: PreTrainedTokenizerFast, path: Path) -> None:
    """Write the problems in verl's format, without those over PROMPT_CAP tokens, and say how many those were."""
    rows: list[dict[str, Any]] = []
    for index, problem in enumerate(problems):
        messages = [{"role": "user", "content": user_message(problem["question"])}]
        if prompt_tokens(tokenizer, messages) > PROMPT_CAP:
            continue
        rows.append(
            {
                "data_source": DATA_SOURCE,
                "prompt": messages,
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": problem["truth"]},
                "extra_info": {"split": split, "index": index},
            }
        )
    if not rows:
        raise BadProblem(f"{path}: no prompt of at most {PROMPT_CAP} tokens is left of {len(problems)}")
    pq.write_table(pa.Table.from_pylist(rows), path)
    print(f"{path}: {len(rows)} prompts, {len(problems) - len(rows)} dropped for more than {PROMPT_CAP} tokens")


def prepare(out: Path, model_out: Path, train: Path, test: Path) -> None:
    """Write the prompts and the model."""
    transformers_logging.disable_progress_bar()
    splits = [("train", read_problems(train)), ("val", read_problems(test))]
    tokenizer = train_tokenizer()
    out.mkdir(parents=True, exist_ok=True)
    for split, problems in splits:
        write_prompts(problems, split, tokenizer, out / f"{split}.parquet")
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
    except (BadProblem, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
