"""Measure the demo model on one real vLLM engine: response lengths, their variance, accuracy.

    python examples/countdown/check.py --model outputs/demo/model

samples 8 responses to each of 64 prompts at temperature 1 and prints what the demo relies on: a long tail of lengths
that comes mostly from the prompt, and an accuracy with room to learn. It takes about half a minute, most of it the
engine's start.
"""

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from reward import compute_score
from task import DATA_SOURCE, PROMPT_CAP, RESPONSE_CAP, Walk, draw_walks

# What a tiny model on vLLM's CPU engine wants, where nobody has said otherwise. Read when vLLM is imported.
ENGINE_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # saves 15 to 20 seconds of compilation
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
KV_CACHE_BYTES = 128 * 2**20  # 1 KiB a token: room for all requests at once


@dataclass(frozen=True)
class Statistics:
    """What the demo relies on. Lengths in tokens, shares and accuracy from 0 to 1."""

    p50: float
    p90: float
    p99: float
    longest: float
    cap_share: float  # responses that ran into the cap
    prompt_variance_share: float  # of the lengths' variance, between prompts
    sampling_variance_share: float  # the rest, between responses to one prompt
    accuracy: float
    mixed_group_share: float  # prompts with both right and wrong responses: those that GRPO learns from


def statistics(lengths: np.ndarray, correct: np.ndarray, cap: int) -> Statistics:
    """Summarise lengths (tokens) and correctness (0 or 1), both (prompts, responses)."""
    p50, p90, p99 = np.percentile(lengths, [50, 90, 99])
    prompt_share = prompt_variance_share(lengths)
    solved = correct.mean(axis=1)
    return Statistics(
        p50=float(p50),
        p90=float(p90),
        p99=float(p99),
        longest=float(lengths.max()),
        cap_share=float((lengths >= cap).mean()),
        prompt_variance_share=prompt_share,
        sampling_variance_share=1.0 - prompt_share,
        accuracy=float(correct.mean()),
        mixed_group_share=float(((solved > 0) & (solved < 1)).mean()),
    )


def prompt_variance_share(lengths: np.ndarray) -> float:
    """Return the share of the variance that the prompt explains, by variance components (one-way, random effects)."""
    within = lengths.var(axis=1, ddof=1).mean()
    between = max(0.0, lengths.mean(axis=1).var(ddof=1) - within / lengths.shape[1])
    return float(between / (between + within))


def sample(model: Path, walks: list[Walk], responses: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample from a vLLM engine; return lengths (tokens) and correctness, both (prompts, responses)."""
    for name, value in ENGINE_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(model),
        dtype="float32",
        enforce_eager=True,
        max_model_len=PROMPT_CAP + RESPONSE_CAP,
        max_num_seqs=64,
        kv_cache_memory_bytes=KV_CACHE_BYTES,
        enable_prefix_caching=False,
        seed=seed,
    )
    tokenizer = engine.get_tokenizer()
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": walk.prompt}], add_generation_prompt=True, return_dict=False
        )
        for walk in walks
    ]
    # Seeds far apart: the same seed on every prompt would give every prompt the same style.
    parameters = [
        SamplingParams(n=responses, temperature=1.0, max_tokens=RESPONSE_CAP, seed=seed * 1_000_003 + 1_009 * index)
        for index in range(len(walks))
    ]
    outputs = engine.generate([{"prompt_token_ids": ids} for ids in prompts], parameters, use_tqdm=False)
    lengths = [[len(answer.token_ids) for answer in output.outputs] for output in outputs]
    correct = [
        # Decoded as verl's reward manager does it.
        [score(tokenizer.decode(answer.token_ids, skip_special_tokens=True), walk) for answer in output.outputs]
        for output, walk in zip(outputs, walks, strict=True)
    ]
    return np.array(lengths, dtype=float), np.array(correct)


def score(text: str, walk: Walk) -> float:
    """Return 1 for a right answer, else 0, by the rule that verl is given."""
    return compute_score(DATA_SOURCE, text, str(walk.truth))["acc"]


def table(found: Statistics) -> str:
    """Return the statistics as a Markdown table."""
    rows = [
        (
            "P50 / P90 / P99 / longest, tokens",
            f"{found.p50:.0f} / {found.p90:.0f} / {found.p99:.0f} / {found.longest:.0f}",
        ),
        ("P90 / P50; longest / P50", f"{found.p90 / found.p50:.1f}; {found.longest / found.p50:.1f}"),
        (f"at the cap of {RESPONSE_CAP}", f"{found.cap_share:.1%}"),
        (
            "variance between prompts / between samples",
            f"{found.prompt_variance_share:.2f} / {found.sampling_variance_share:.2f}",
        ),
        ("accuracy", f"{found.accuracy:.2f}"),
        ("groups with mixed rewards", f"{found.mixed_group_share:.2f}"),
    ]
    return "\n".join(["| measured | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description="Measure the demo model on one vLLM engine (about half a minute).",
        epilog="example: python examples/countdown/check.py --model outputs/demo/model",
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--prompts", type=int, default=64, help="a multiple of 64")
    parser.add_argument("--responses", type=int, default=8, help="to each prompt, two or more")
    parser.add_argument("--seed", type=int, default=11, help="of the prompts and of the sampling")
    parser.add_argument("--json", type=Path, help="file to write the statistics to, too")
    args = parser.parse_args()
    if not (args.model / "config.json").is_file():
        parser.error(f"--model {args.model}: no model there; make one with examples/countdown/build.py")
    if args.responses < 2:
        parser.error(f"--responses {args.responses}: two or more are needed to tell prompts from sampling")
    try:
        walks = draw_walks(args.prompts, args.seed)
    except ValueError as error:
        parser.error(f"--prompts {args.prompts}: {error}")
    found = statistics(*sample(args.model, walks, args.responses, args.seed), RESPONSE_CAP)
    print(table(found))
    if args.json is not None:
        args.json.write_text(json.dumps(asdict(found), indent=2) + "\n")


if __name__ == "__main__":
    main()
