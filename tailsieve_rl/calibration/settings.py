"""What to measure. Everything that can be wrong with it is found here, before an engine starts."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tailsieve_rl.input_error import InputError
from tailsieve_rl.versions import no_speculation

OURS = ("--host", "--port", "--uds", "--served-model-name", "--speculative-config", "--disable-log-stats")
"""Arguments of `vllm serve` that the measurement depends on, so they are not the user's to give."""

Prompt = str | list[int]


class CalibrateError(InputError):
    """Bad input, in one line that names it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One measurement.

    Attributes:
        model: folder of the model; with `url`, the name that the engine serves it under.
        out: the profile to write.
        url: of a running engine; None to start one for each draft depth.
        batch_sizes: b, requests that decode at once, ascending, 1 included.
        tokens: length of each response.
        repeats: measured runs for each b.
        prompt_tokens: length of the random prompts.
        prompts: prompts to use instead of random ones; empty for those.
        draft_depths: tokens drafted at once, ascending; 0 is no speculation.
        speculative: vLLM's speculative configuration, without its depth.
        engine_arguments: further arguments of `vllm serve`.
    """

    model: str
    out: Path
    url: str | None = None
    batch_sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    tokens: int = 256
    repeats: int = 3
    prompt_tokens: int = 16
    prompts: tuple[Prompt, ...] = ()
    draft_depths: tuple[int, ...] = (0,)
    speculative: dict[str, Any] | None = None
    engine_arguments: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise CalibrateError for the first thing that is wrong. Creates the folder of `out`."""
        _whole("--batch-sizes", self.batch_sizes, least=1)
        if self.batch_sizes[0] != 1:
            raise CalibrateError("--batch-sizes must contain 1: a decode profile needs tau of a replica's last request")
        _whole("--draft-depths", self.draft_depths, least=0)
        for name, value, least in (("tokens", self.tokens, 2), ("repeats", self.repeats, 1)):
            if value < least:
                raise CalibrateError(f"--{name} = {value} must be {least} or more")
        if self.prompt_tokens < 1:
            raise CalibrateError(f"--prompt-tokens = {self.prompt_tokens} must be 1 or more")
        if self.url is None:
            self._check_start()
        else:
            self._check_url(self.url)
        _check_writable(self.out)

    def check_length(self, longest: int | None, where: str) -> None:
        """Raise CalibrateError if a response would not fit `longest`, the tokens of prompt and response together."""
        prompt = 1 if self.prompts else self.prompt_tokens
        if longest is not None and prompt + self.tokens > longest:
            raise CalibrateError(
                f"--tokens = {self.tokens}, after a prompt of {prompt}, is beyond the {longest} tokens of {where}"
            )

    def _check_start(self) -> None:
        folder = Path(self.model)
        if not (folder / "config.json").is_file():
            raise CalibrateError(
                f"--model {self.model}: " + ("no config.json in it" if folder.is_dir() else "no folder")
            )
        self.check_length(_longest(folder), f"the model {self.model}")
        if self.draft_depths[-1] > 0 and self.speculative is None:
            raise CalibrateError(f"--draft-depths has {self.draft_depths[-1]}, which needs --speculative JSON")
        if self.draft_depths[-1] == 0 and self.speculative is not None:
            raise CalibrateError("--speculative needs --draft-depths with a depth above 0")
        if self.speculative is not None and (why := no_speculation()):
            raise CalibrateError(f"--speculative is {why}")
        for argument in self.engine_arguments:
            name = argument.partition("=")[0].replace("_", "-")
            if name in OURS:
                raise CalibrateError(f"{name} is set by calibrate and cannot be given to the engine")

    def _check_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise CalibrateError(f"--url {url} must be like http://host:port")
        if self.engine_arguments or self.speculative is not None:
            raise CalibrateError("--speculative and arguments after -- are for an engine to start, not for --url")
        if len(self.draft_depths) > 1:
            raise CalibrateError("--url measures one engine, and so takes one --draft-depths: the engine's own")


def whole_numbers(name: str, text: str) -> tuple[int, ...]:
    """The numbers of "1,2,4", ascending.

    Raises:
        CalibrateError: naming the option and the text.
    """
    try:
        return tuple(sorted(int(part) for part in text.split(",")))
    except ValueError:
        raise CalibrateError(f"{name} {text!r} must be whole numbers with commas between them") from None


def speculative_of(text: str | None) -> dict[str, Any] | None:
    """The JSON object of --speculative."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise CalibrateError(f"--speculative is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise CalibrateError(f'--speculative {text:.60} must be a JSON object, such as {{"method": "ngram"}}')
    if "num_speculative_tokens" in found:
        raise CalibrateError("--speculative: num_speculative_tokens is what --draft-depths gives")
    return found


def prompts_of(file: str | None) -> tuple[Prompt, ...]:
    """Prompts of a file: of JSON lines (a string, token ids, or an object with one of them as "prompt"), or of text."""
    if file is None:
        return ()
    try:
        lines = [line for line in Path(file).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrateError(f"--prompts {file}: {error}") from None
    if not lines:
        raise CalibrateError(f"--prompts {file}: no prompt in it")
    if not file.endswith(".jsonl"):
        return tuple(lines)
    return tuple(_json_prompt(file, number, line) for number, line in enumerate(lines, 1))


def _json_prompt(file: str, number: int, line: str) -> Prompt:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise CalibrateError(f"--prompts {file}, prompt {number}: {error}") from None
    prompt = found.get("prompt") if isinstance(found, dict) else found
    if isinstance(prompt, str) and prompt:
        return prompt
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return prompt
    raise CalibrateError(f"--prompts {file}, prompt {number}: must be a text or token ids, or have one as 'prompt'")


def _whole(name: str, values: tuple[int, ...], least: int) -> None:
    for value in values:
        if value < least:
            raise CalibrateError(f"{name}: {value} must be {least} or more")
        if values.count(value) > 1:
            raise CalibrateError(f"{name}: {value} is given twice")


def _longest(folder: Path) -> int | None:
    """Tokens of prompt and response together that the model was made for; None where its configuration says nothing."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = config.get("text_config", config)
        longest = config.get("max_position_embeddings")
    except (OSError, ValueError, AttributeError) as error:
        raise CalibrateError(f"--model {folder}: its config.json cannot be read: {error}") from None
    return longest if isinstance(longest, int) else None


def _check_writable(out: Path) -> None:
    if out.is_dir():
        raise CalibrateError(f"--out {out} is a folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists():
            out.open("a").close()
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise CalibrateError(f"--out {out} cannot be written: {error.strerror or error}") from None
