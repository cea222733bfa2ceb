"""The countdown walk: a synthetic task whose response lengths have the long tail of a reasoning workload.

A prompt reads ``start 37 step 3 times 12`` and asks for ``(37 + 3 * 12) % 100``. The response walks there one step at
a time while an index counts down to 1, so that *when to stop* is a local decision that a tiny model can learn. It is
written in one of two styles, announced by its first word:

    brief 12 : 40 11 : 43 ... 1 : 73 answer 73 <|im_end|>                      3 tokens a step
    steps 12 : 37 + 3 = 40 11 : 40 + 3 = 43 ... answer 73 <|im_end|>           7 tokens a step

Now and then a response doubts itself (``wait``) and walks again; its last answer counts. Lengths therefore vary
between prompts (the number of steps) and between samples of one prompt (the style, the doubts).

The number of steps is legible in the prompt: never present this as a length-prediction task.

The reward rule is in ``reward.py``, which verl loads by its path, alone.
"""

import math
import random
from collections.abc import Collection
from dataclasses import dataclass
from statistics import NormalDist

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

DATA_SOURCE = "tailsieve/countdown"  # not a name that verl scores by itself: a forgotten reward function fails loudly
RESPONSE_CAP = 384  # response tokens; 1 to 2 percent of the responses run into it
PROMPT_CAP = 32  # prompt tokens allowed; a prompt has PROMPT_TOKENS with its chat template
PROMPT_TOKENS = 14

MODULUS = 100
MAX_STEP = 9
MIN_TIMES, MAX_TIMES = 2, 160
BLOCK = 64  # prompts; every block of this size spans the same quantiles of `times`
MEDIAN_TIMES, SIGMA_TIMES = 9.0, 0.95  # lognormal `times` of the prompts

STEPS_STYLE_SHARE = 0.4  # of the demonstrated walks
SLIP = {"brief": 0.07, "steps": 0.02}  # chance that a demonstrated step is wrong: sets the accuracy before RL
WAIT = 0.12  # chance that a demonstration walks again after its answer

# verl's token builder for the Qwen family needs ChatML: "<|im_end|>" ends a turn, and a line break is one token.
SPECIAL_TOKENS = ("<pad>", "<|im_start|>", "<|im_end|>")
CHAT_WORDS = ("user", "assistant", "system", "\n")
NUMBERS = 512
WORDS = ("start", "step", "times", "brief", "steps", ":", "+", "=", "answer", "wait")
CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Walk:
    """One problem: add ``step`` to ``start``, ``times`` times, modulo 100."""

    start: int
    step: int
    times: int

    @property
    def prompt(self) -> str:
        """The user message."""
        return f"start {self.start} step {self.step} times {self.times}"

    @property
    def truth(self) -> int:
        """The right answer."""
        return (self.start + self.step * self.times) % MODULUS

    @property
    def prompt_words(self) -> list[str]:
        """The prompt as the chat template renders it, up to where the response begins."""
        return [
            *("<|im_start|>", "user", "\n"),
            *self.prompt.split(),
            *("<|im_end|>", "\n", "<|im_start|>", "assistant", "\n"),
        ]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer: one token a word or line break, 530 tokens in all, chat template included."""
    words = [*SPECIAL_TOKENS, "<unk>", *map(str, range(NUMBERS)), *WORDS, *CHAT_WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<|im_end|>",
        unk_token="<unk>",
        additional_special_tokens=["<|im_start|>"],
        padding_side="left",
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def draw_walks(count: int, seed: int, taken: Collection[Walk] = ()) -> list[Walk]:
    """Draw problems with lognormal ``times``, without sampling luck in the tail.

    Args:
        count: Number of problems, a multiple of ``BLOCK``.
        seed: The same seed gives the same problems.
        taken: Problems to avoid, where another with the same ``times`` is found.

    Each block of 64 holds one draw from each 1/64 quantile (the outermost two at their midpoints, so that the longest
    problem of a block is always the same), and each aligned half, quarter, ... of a block holds one from every second,
    fourth, ... quantile: batches of 8, 16 or 32 prompts see the tail evenly too.
    """
    if count <= 0 or count % BLOCK:
        raise ValueError(f"must be a positive multiple of {BLOCK}, so that every block has the same tail")
    rng = random.Random(seed)
    avoid = frozenset(taken)
    return [_draw_walk(rng, k, avoid) for _ in range(count // BLOCK) for k in _spread(list(range(BLOCK)), rng)]


def _draw_walk(rng: random.Random, quantile: int, avoid: frozenset[Walk]) -> Walk:
    """Draw a problem whose ``times`` lies in the given 1/64 quantile."""
    within = 0.5 if quantile in (0, BLOCK - 1) else max(rng.random(), 1e-9)
    z = NormalDist().inv_cdf((quantile + within) / BLOCK)
    times = max(MIN_TIMES, min(MAX_TIMES, round(MEDIAN_TIMES * math.exp(SIGMA_TIMES * z))))
    for _ in range(100):
        walk = Walk(rng.randrange(MODULUS), rng.randint(1, MAX_STEP), times)
        if walk not in avoid:
            break
    return walk


def _spread(ranks: list[int], rng: random.Random) -> list[int]:
    """Shuffle sorted ranks so that each aligned power-of-two run takes one from each group of neighbours."""
    if len(ranks) == 1:
        return ranks
    halves: tuple[list[int], list[int]] = ([], [])
    for pair in zip(ranks[::2], ranks[1::2], strict=True):
        first = rng.randrange(2)
        halves[0].append(pair[first])
        halves[1].append(pair[1 - first])
    return _spread(halves[0], rng) + _spread(halves[1], rng)


def demonstration(rng: random.Random, walk: Walk, cap: int) -> list[str]:
    """Return the words of one imperfect response to imitate, cut after ``cap`` words."""
    words: list[str] = []
    while len(words) < cap:
        style = "steps" if rng.random() < STEPS_STYLE_SHARE else "brief"
        words.append(style)
        value = walk.start
        for index in range(walk.times, 0, -1):
            after = _add(rng, value, walk.step, SLIP[style])
            shown = [str(value), "+", str(walk.step), "="] if style == "steps" else []
            words += [str(index), ":", *shown, str(after)]
            value = after
        words += ["answer", str(value)]
        if rng.random() >= WAIT:
            words.append("<|im_end|>")
            break
        words.append("wait")
    return words[:cap]


def _add(rng: random.Random, value: int, step: int, slip: float) -> int:
    """Add, but with probability ``slip`` forget the step or be off by one."""
    right = (value + step) % MODULUS
    if rng.random() >= slip:
        return right
    return value if rng.random() < 0.5 else (right + 1) % MODULUS
