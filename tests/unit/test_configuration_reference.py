"""docs/configuration.md is what the settings classes say."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailsieve_rl.config import reference

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_settings_classes_say():
    """If not: python -m tailsieve_rl.config.reference > docs/configuration.md"""
    assert (ROOT / "docs/configuration.md").read_text(encoding="utf-8") == reference.reference()


def test_every_class_that_a_block_is_read_into_is_on_the_page():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tailsieve_rl").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\bbuild_block\((\w*Settings),", text)}
    assert "Settings" in read or len(read) > 3
    assert read and read <= {block.settings.__name__ for block in reference.BLOCKS}


@dataclass
class Undescribed:
    """A block.

    Attributes:
        told: what it does.
    """

    told: int = 1
    untold: str | None = None


def test_a_setting_without_a_text_is_refused(monkeypatch):
    monkeypatch.setattr(reference, "BLOCKS", (reference.Block("a.b", Undescribed, "a test"),))
    with pytest.raises(ValueError, match=r"Undescribed\.untold: its class's docstring does not say"):
        reference.reference()
