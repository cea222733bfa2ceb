"""Build the demo: train a 0.56 M parameter Qwen3 on the countdown walk and write prompts for verl.

    python examples/countdown/build.py --out outputs/demo

writes OUT/model (Hugging Face format), OUT/train.parquet, OUT/val.parquet and OUT/recipe.json. It takes about 90 s
on two cores, needs no download, and gives the same files every time on one machine. If OUT already holds the result of
the same recipe it does nothing.
"""

import argparse
import hashlib
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from task import BLOCK, DATA_SOURCE, MAX_STEP, MODULUS, PROMPT_TOKENS, Walk, build_tokenizer, demonstration, draw_walks
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

SMOKE_STEPS = 20
BATCH_TOKENS = 1024
DOCUMENT_CAP = BATCH_TOKENS // 2 - PROMPT_TOKENS  # response tokens of a demonstration: two fit a batch
LEARNING_RATE, WARMUP_STEPS, FINAL_LR_SHARE = 2e-3, 40, 0.05
SHORT_TIMES, ALL_TIMES = (2, 24), (2, 160)  # ranges of `times` in the demonstrations
SHORT_ONLY_UNTIL, SHORT_SHARE = 0.25, 0.5  # the first quarter is short only, then half
IGNORED_LABEL = -100

Example = tuple[list[int], list[int]]  # token ids of a prompt and of its response


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """Return an untrained model whose vocabulary is exactly the tokenizer's (vLLM masks logits beyond it)."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        max_position_embeddings=1024,
        rope_theta=10000.0,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def draw_example(rng: random.Random, vocabulary: dict[str, int], progress: float) -> Example:
    """Draw one demonstration; ``progress`` is the share of the training that is behind us."""
    short = progress < SHORT_ONLY_UNTIL or rng.random() < SHORT_SHARE
    low, high = SHORT_TIMES if short else ALL_TIMES
    times = round(math.exp(rng.uniform(math.log(low), math.log(high))))
    walk = Walk(rng.randrange(MODULUS), rng.randint(1, MAX_STEP), times)
    response = demonstration(rng, walk, DOCUMENT_CAP)
    return [vocabulary[w] for w in walk.prompt_words], [vocabulary[w] for w in response]


def batches(rng: random.Random, vocabulary: dict[str, int], steps: int) -> Iterator[list[Example]]:
    """Yield ``steps`` batches of at most BATCH_TOKENS padded tokens, each of similar lengths."""
    done = 0
    while True:
        pool = [draw_example(rng, vocabulary, done / steps) for _ in range(256)]
        pool.sort(key=lambda example: len(example[1]))
        packed: list[list[Example]] = [[]]
        for example in pool:  # sorted, so the newest is the longest of its batch
            if packed[-1] and (len(example[0]) + len(example[1])) * (len(packed[-1]) + 1) > BATCH_TOKENS:
                packed.append([])
            packed[-1].append(example)
        rng.shuffle(packed)
        for batch in packed:
            if done == steps:
                return
            done += 1
            yield batch


def collate(batch: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return padded token ids and, for each, the token to predict next; both (batch, length).

    Only tokens of the response are to be predicted.
    """
    length = max(len(prompt) + len(response) for prompt, response in batch)
    ids = torch.zeros(len(batch), length, dtype=torch.long)
    labels = torch.full((len(batch), length), IGNORED_LABEL)
    for row, (prompt, response) in enumerate(batch):
        end = len(prompt) + len(response)
        ids[row, :end] = torch.tensor(prompt + response)
        labels[row, len(prompt) - 1 : end - 1] = torch.tensor(response)
    return ids, labels


def train(model: Qwen3ForCausalLM, vocabulary: dict[str, int], steps: int, seed: int) -> None:
    """Fit the model to demonstrations: AdamW, linear warm-up, cosine decay.

    Each batch is halved between two Python threads, each with one intra-op thread. That is as fast as two intra-op
    threads and, unlike those (whose barriers spin), not twenty times slower when something else wants a core. The sum
    of the two gradients does not depend on which half finishes first.
    """
    torch.set_num_threads(1)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    started, smooth = time.monotonic(), 0.0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for step, batch in enumerate(batches(random.Random(seed + 1), vocabulary, steps)):
            cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
            scale = min(1.0, (step + 1) / WARMUP_STEPS) * (FINAL_LR_SHARE + (1 - FINAL_LR_SHARE) * cosine)
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * scale
            labelled = sum(len(response) for _, response in batch)
            halves = [half for half in (batch[0::2], batch[1::2]) if half]
            results = list(pool.map(lambda half, n=labelled: gradients(model, parameters, half, n), halves))
            for index, parameter in enumerate(parameters):
                parameter.grad = sum(grads[index] for _, grads in results)
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            loss = sum(part for part, _ in results)
            smooth = loss if step == 0 else 0.95 * smooth + 0.05 * loss
            show_progress(step + 1, steps, smooth, time.monotonic() - started)


def gradients(
    model: Qwen3ForCausalLM, parameters: list[torch.nn.Parameter], examples: list[Example], labelled: int
) -> tuple[float, tuple[torch.Tensor, ...]]:
    """Return the examples' share of the batch's mean loss (over ``labelled`` tokens), and its gradient."""
    ids, labels = collate(examples)
    logits = model(input_ids=ids).logits.flatten(0, 1)
    loss = F.cross_entropy(logits, labels.flatten(), ignore_index=IGNORED_LABEL, reduction="sum") / labelled
    return loss.item(), torch.autograd.grad(loss, parameters)


def show_progress(step: int, steps: int, loss: float, seconds: float) -> None:
    """Update one line on a terminal; print a few lines elsewhere."""
    line = f"training the demo model: step {step}/{steps}  loss {loss:.3f}  {seconds:.0f} s"
    if sys.stdout.isatty():
        if step % 20 == 0 or step == steps:
            print(f"\r{line}", end="\n" if step == steps else "", flush=True)
    elif step % 500 == 0 or step == steps:
        print(line, flush=True)


def write_prompts(walks: list[Walk], split: str, path: Path) -> None:
    """Write the problems in verl's format, in their order."""
    rows = [
        {
            "data_source": DATA_SOURCE,
            "prompt": [{"role": "user", "content": walk.prompt}],
            "ability": "arithmetic",
            "reward_model": {"style": "rule", "ground_truth": str(walk.truth)},
            "extra_info": {"split": split, "index": index},
        }
        for index, walk in enumerate(walks)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)


def recipe(args: argparse.Namespace) -> dict[str, int | str]:
    """Return what the outputs depend on: the settings, and the text of the two files that make them."""
    here = Path(__file__).resolve().parent
    source = b"".join((here / name).read_bytes() for name in ("task.py", "build.py"))
    return {
        "seed": args.seed,
        "steps": args.steps,
        "train_prompts": args.train_prompts,
        "val_prompts": args.val_prompts,
        "source_sha256": hashlib.sha256(source).hexdigest(),
    }


def is_built(out: Path, wanted: dict[str, int | str]) -> bool:
    """Tell whether ``out`` holds the outputs of this very recipe; recipe.json, written last, vouches for all."""
    files = ("recipe.json", "train.parquet", "val.parquet", "model/model.safetensors", "model/tokenizer.json")
    if not all((out / name).is_file() for name in files):
        return False
    try:
        return bool(json.loads((out / "recipe.json").read_text()) == wanted)
    except ValueError:
        return False


def build(args: argparse.Namespace) -> None:
    """Build everything into ``args.out``, unless it is there."""
    out, wanted = args.out, recipe(args)
    if is_built(out, wanted):
        print(f"{out}: already built with this recipe, nothing to do")
        return
    transformers_logging.disable_progress_bar()
    out.mkdir(parents=True, exist_ok=True)
    (out / "recipe.json").unlink(missing_ok=True)
    train_walks = draw_walks(args.train_prompts, seed=2 * args.seed)
    write_prompts(train_walks, "train", out / "train.parquet")
    write_prompts(draw_walks(args.val_prompts, 2 * args.seed + 1, taken=train_walks), "val", out / "val.parquet")
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, args.seed)
    train(model, tokenizer.get_vocab(), args.steps, args.seed)
    model.save_pretrained(out / "model")
    tokenizer.save_pretrained(out / "model")
    (out / "recipe.json").write_text(json.dumps(wanted, indent=2) + "\n")
    print(f"{out}: model ({model.num_parameters():,} parameters), {args.train_prompts} + {args.val_prompts} prompts")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(
        description="Build the demo model and its prompts (about 90 s on two cores).",
        epilog="example: python examples/countdown/build.py --out outputs/demo",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the demonstrations and the prompts")
    parser.add_argument("--steps", type=int, default=2000, help="training steps of 1024 tokens")
    parser.add_argument("--train-prompts", type=int, default=1024, help=f"a multiple of {BLOCK}")
    parser.add_argument("--val-prompts", type=int, default=64, help=f"a multiple of {BLOCK}")
    parser.add_argument("--smoke", action="store_true", help=f"a barely trained model in seconds ({SMOKE_STEPS} steps)")
    args = parser.parse_args(argv)
    if args.smoke:
        args.steps = SMOKE_STEPS
    if args.steps < 1 or args.seed < 0:
        parser.error(f"--steps {args.steps} --seed {args.seed}: need at least one step and a seed of 0 or more")
    for name, count in (("--train-prompts", args.train_prompts), ("--val-prompts", args.val_prompts)):
        if count < 1 or count % BLOCK:
            parser.error(f"{name} {count}: must be a positive multiple of {BLOCK}")
    return args


if __name__ == "__main__":
    build(parse_arguments())
