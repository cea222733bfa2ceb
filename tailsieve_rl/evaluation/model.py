"""The model to evaluate: a Hugging Face folder, a checkpoint of verl's, or a name on the hub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tailsieve_rl.input_error import InputError

WEIGHTS = ("*.safetensors", "*.bin")
MERGED = "merged_model"
GENERIC = ("actor", "huggingface", "model", MERGED)
"""Last parts of paths that say nothing of the model."""


@dataclass(frozen=True, slots=True)
class Model:
    """What was given, and what it is.

    Attributes:
        given: on the command line.
        name: for tables and folders.
        path: a Hugging Face folder, or a name on the hub; of shards, where their configuration and tokenizer are.
        shards: verl's FSDP checkpoint, which must be merged first.
    """

    given: str
    name: str
    path: str
    shards: Path | None = None


def find_model(given: str) -> Model:
    """Find out what was given; nothing is loaded or written.

    Raises:
        InputError: if it is no model, or a checkpoint that cannot be merged here, with the command that does.
    """
    folder = Path(given)
    if not folder.exists():
        if given.startswith((".", "/", "~")) or given.count("/") != 1:
            raise InputError(f"{given}: no such folder, and no name of a model on the hub (OWNER/NAME)")
        return Model(given, folder.name, given)
    name = _name(folder.resolve())
    folder = folder / "actor" if (folder / "actor").is_dir() else folder
    if folder.name == "huggingface" and not _has_weights(folder):
        folder = folder.parent
    for complete in (folder, folder / "huggingface", folder / "model" / "huggingface"):
        if (complete / "config.json").is_file() and _has_weights(complete):
            return Model(given, name, str(complete))
    if (folder / "fsdp_config.json").is_file():
        if not (folder / "huggingface" / "config.json").is_file():
            raise InputError(f"{folder}: verl's checkpoint has no huggingface/config.json: it cannot be merged")
        return Model(given, name, str(folder / "huggingface"), shards=folder)
    if (folder / "model" / "dist_ckpt").is_dir():
        command = merge_command("megatron", folder, Path("MERGED"))
        raise InputError(f"{folder}: merge this Megatron checkpoint first: {' '.join(command)}")
    if (folder / "config.json").is_file():
        raise InputError(f"{folder}: has a config.json, but no weights ({', '.join(WEIGHTS)})")
    raise InputError(f"{folder}: has no config.json: neither a model nor a checkpoint of verl's (global_step_N/actor)")


def merge_command(backend: str, shards: Path, target: Path) -> list[str]:
    """The command line of verl's own model merger."""
    arguments = ["merge", "--backend", backend, "--local_dir", str(shards), "--target_dir", str(target)]
    return ["python", "-m", "verl.model_merger", *arguments]


def merged(model: Model, out: Path) -> str:
    """The path of a model that an engine can load: shards are merged into a folder of `out`, whole or not at all.

    verl's merger writes bfloat16.

    Raises:
        RuntimeError: with the merger's last line, if it fails.
    """
    if model.shards is None:
        return model.path
    target, partial = out / MERGED, out / f"{MERGED}.partial"
    for left_over in (target, partial):
        shutil.rmtree(left_over, ignore_errors=True)
    command = merge_command("fsdp", model.shards, partial)
    print(f"evaluate: merging {model.shards}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"{' '.join(command)} failed: {last[0]}")
    os.replace(partial, target)
    return str(target)


def _name(folder: Path) -> str:
    """The last part of a path that names the model; a step's number after its run's name."""
    parts = [part for part in folder.parts if part not in GENERIC] or [folder.name]
    return "-".join(parts[-2:]) if parts[-1].startswith("global_step_") else parts[-1]


def _has_weights(folder: Path) -> bool:
    return any(any(folder.glob(pattern)) for pattern in WEIGHTS)
