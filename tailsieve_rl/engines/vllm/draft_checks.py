"""What can be wrong with speculation, found in the checkpoints' files before an engine starts. Without torch and
vLLM."""

from __future__ import annotations

import json
import logging
import re
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailsieve_rl.input_error import InputError

logger = logging.getLogger(__name__)

MTP, DFLASH, DRAFT_MODEL, NGRAM = "mtp", "dflash", "draft_model", "ngram"
METHODS = (MTP, DFLASH, DRAFT_MODEL, NGRAM)
WITH_DRAFTER = (DFLASH, DRAFT_MODEL)
"""Methods whose drafter is a checkpoint of its own."""

LAYER = re.compile(r"\blayers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a Hugging Face checkpoint.

    Attributes:
        config: of the text model.
    """

    path: Path
    config: dict[str, Any]

    def names(self) -> list[str]:
        index = self.path / "model.safetensors.index.json"
        if index.is_file():
            return sorted(_json(index)["weight_map"])
        return sorted(self.shapes())

    def shapes(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for file in sorted(self.path.glob("*.safetensors")):
            found |= _header(file)
        return found


def check(
    method: str,
    model: str,
    drafter: str | None,
    largest: int,
    depths: Collection[int] = (),
    data_parallel_size: int = 1,
    load_format: str = "auto",
    sampled_drafts: bool = False,
    seeded: bool = False,
) -> None:
    """Raise InputError, one line that names the key, for the first thing that would fail later or silently.

    Args:
        method: vLLM's name: mtp, dflash, draft_model or ngram.
        model: path of the target. What is not on this machine yet cannot be checked, and is logged.
        drafter: path of the drafter for dflash and draft_model; None for the others.
        largest: `num_speculative_tokens`, the largest depth that can be set.
        depths: that will be set.
        data_parallel_size: of a replica.
        load_format: verl's `rollout.load_format`.
        sampled_drafts: whether `draft_sample_method = probabilistic`.
        seeded: whether requests have seeds.
    """
    if method not in METHODS:
        raise InputError(f"speculation method = {method} must be one of {', '.join(METHODS)}")
    if largest < 1:
        raise InputError(f"num_speculative_tokens = {largest} must be 1 or more")
    for depth in depths:
        if not 0 <= depth <= largest:
            raise InputError(
                f"draft depth = {depth} must lie between 0 and the largest, num_speculative_tokens = {largest}"
            )
    if data_parallel_size > 1:
        raise InputError(
            f"rollout.data_parallel_size = {data_parallel_size} must be 1 with a draft depth that changes: vLLM's "
            "data-parallel ranks would draft different numbers of tokens and wait for each other for ever"
        )
    if method != NGRAM and load_format == "dummy":
        raise InputError(
            f"rollout.load_format = dummy must be auto with method = {method}: weight updates bring the target's "
            "weights only, and the drafter would stay random"
        )
    if sampled_drafts and seeded:
        raise InputError(
            "speculative_config.draft_sample_method = probabilistic must be greedy with sampling.seed: vLLM 0.30 draws "
            "drafts without the request's seed, so that the same seed would not give the same response"
        )
    if (drafter is None) == (method in WITH_DRAFTER):
        needs = "needs the path of its drafter" if drafter is None else f"takes no drafter, but got {drafter}"
        raise InputError(f"speculation method = {method} {needs}")
    target = read(model)
    if target is None:
        return
    if method == MTP:
        _check_mtp(target)
    elif method == NGRAM:
        _check_ngram(target)
    elif (own := read(drafter or "")) is not None:
        _check_vocabulary(method, target, own)
        if method == DFLASH:
            _check_dflash(target, own, largest)


def read(path: str) -> Checkpoint | None:
    """The checkpoint in a folder; None, with a warning, if `path` may be the name of one that is not here yet."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        elsewhere = "://" in path or (len(folder.parts) == 2 and not path.startswith((".", "/", "~")))
        if not elsewhere:
            raise InputError(f"model path {path}: no such folder")
        logger.warning("speculation with %s is not checked: the checkpoint is not on this machine yet", path)
        return None
    if not (folder / "config.json").is_file():
        raise InputError(f"model path {path}: no config.json in it")
    config = _json(folder / "config.json")
    return Checkpoint(folder, {**config, **config.get("text_config", {})})


def _check_mtp(target: Checkpoint) -> None:
    layers = int(target.config.get("num_hidden_layers", 0))
    names = target.names()
    if not any("mtp" in name or _beyond(name, layers) for name in names):
        raise InputError(
            f"method = mtp needs a model with multi-token prediction weights, and {target.path} has none: of its "
            f"{len(names)} tensors, none is called mtp.* or lies beyond its {layers} layers"
        )


def _beyond(name: str, layers: int) -> bool:
    """Whether a tensor belongs to a layer after the last: so DeepSeek's checkpoints keep theirs."""
    found = LAYER.search(name)
    return found is not None and layers > 0 and int(found.group(1)) >= layers


def _check_ngram(target: Checkpoint) -> None:
    recurrent = sorted(set(target.config.get("layer_types") or ()) - {"full_attention", "sliding_attention"})
    if recurrent:
        raise InputError(
            f"method = ngram cannot serve {target.path}, which has layers of {', '.join(recurrent)}: vLLM 0.30 goes on "
            "from the wrong state after a step in which nothing was found to draft; mtp and dflash always find some"
        )


def _check_vocabulary(method: str, target: Checkpoint, drafter: Checkpoint) -> None:
    ours, theirs = drafter.config.get("vocab_size"), target.config.get("vocab_size")
    if ours != theirs:
        raise InputError(
            f"method = {method}: the drafter {drafter.path} is for another target: its vocab_size = {ours}, that of "
            f"{target.path} is {theirs}"
        )


def _check_dflash(target: Checkpoint, drafter: Checkpoint, largest: int) -> None:
    config = drafter.config
    own: dict[str, Any] = config.get("dflash_config") or {}
    layers = own.get("target_layer_ids")
    if not layers or own.get("mask_token_id", config.get("mask_token_id")) is None:
        raise InputError(
            f"method = dflash: {drafter.path} is no DFlash drafter: its config.json has no dflash_config with "
            "target_layer_ids and mask_token_id"
        )
    another = f"method = dflash: the drafter {drafter.path} is for another target:"
    hidden = int(config.get("target_hidden_size") or config["hidden_size"])
    of_target = target.config.get("hidden_size")
    if hidden != of_target:
        raise InputError(f"{another} it reads hidden states of size {hidden}, those of {target.path} have {of_target}")
    count = int(target.config.get("num_hidden_layers", 0))
    if outside := [layer for layer in layers if not 0 <= layer < count]:
        raise InputError(
            f"{another} its target_layer_ids {', '.join(map(str, outside))} are none of the {count} of {target.path}"
        )
    given = drafter.shapes().get("fc.weight")
    if given is not None and given[1] != len(layers) * hidden:
        raise InputError(
            f"{another} its fc.weight takes {given[1]} inputs, its {len(layers)} target_layer_ids give "
            f"{len(layers) * hidden}"
        )
    block = config.get("block_size")
    if block is not None and largest > block - 1:
        raise InputError(
            f"num_speculative_tokens = {largest} must be at most {block - 1} with {drafter.path}, which was trained to "
            f"draft blocks of {block} (block_size)"
        )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: not a JSON object")
    return found


def _header(file: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a safetensors file: it begins with the length of a JSON object that has them."""
    with file.open("rb") as opened:
        start = opened.read(8)
        if len(start) < 8:
            raise InputError(f"{file}: not a safetensors file")
        header = json.loads(opened.read(struct.unpack("<Q", start)[0]))
    return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
