"""What an offline run of wandb wrote: its file is a LevelDB log of protobuf records."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wandb.proto.wandb_internal_pb2 import Record

BLOCK, FILE_HEADER, HEADER = 32 * 1024, 7, 7
"""Bytes of a block, of the file's header, and of a chunk's: checksum (4), length (2), type (1)."""

FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def history(file: Path) -> list[dict[str, Any]]:
    """What was logged, step by step: metric to value."""
    records = (Record.FromString(data) for data in _records(file.read_bytes()))
    return [
        {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]


def _records(data: bytes) -> Iterator[bytes]:
    at, parts = FILE_HEADER, []
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:  # too little for a chunk: zeros
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts.append(data[at + HEADER : at + HEADER + length])
        at += HEADER + length
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts = []
