"""What the pages name exists: files, metrics, messages, settings, commands."""

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from tailsieve_rl import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(page for f in ("docs", "examples", "recipes") for page in (ROOT / f).rglob("*.md")),
]
TROUBLES = (ROOT / "docs/tuning_and_troubleshooting.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([^`\n]+)`")


@cache
def texts_of_the_code() -> str:
    """Every string of the package, what is filled in as "…"."""
    found = []
    for path in (ROOT / "tailsieve_rl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%\w", "…", node.value))
    return "\n".join(found)


def rows(page: str) -> list[list[str]]:
    """The cells of all tables."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_to_what_is_there(page):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()] == []


def test_the_index_has_every_page():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert pages - set(re.findall(r"\]\(([^)#\s]+)", index)) == set()


def test_every_metric_that_a_page_names_is_one():
    named = {name for page in PAGES for name in re.findall(r"`tailsieve/(\w+)`", page.read_text(encoding="utf-8"))}
    code = texts_of_the_code().splitlines()
    parts = {part for text in code for part in (text, text.removeprefix("tailsieve/"))}
    parts |= {text.replace("…", pool) for text in code if "…" in text for pool in ("tail", "bulk")}
    assert len(named) > 20 and named <= parts


def test_every_message_of_the_troubleshooting_page_is_one_of_ours():
    messages = [code for row in rows(TROUBLES) for cell in row[:2] for code in CODE.findall(cell) if " " in code]
    assert len(messages) > 15
    assert [message for message in messages if message not in texts_of_the_code()] == []


def test_every_setting_of_the_troubleshooting_page_is_one():
    keys, block = set(), ""
    for line in (ROOT / "docs/configuration.md").read_text(encoding="utf-8").splitlines():
        block = line.removeprefix("### ").removeprefix("## ") if line.startswith("##") else block
        if key := re.match(r"\| `(\w+)` \|", line):
            keys |= {f"{of}.{key[1]}".removeprefix("trainer.v1.tailsieve.") for of in CODE.findall(block)}
    verl = ("actor_rollout_ref.rollout.", "data.", "reward.", "trainer.")
    named = {
        code.split("=")[0] for row in rows(TROUBLES) for code in CODE.findall(row[-1]) if re.match(r"[\w.]+(=|$)", code)
    }
    ours = {key for key in named if key in keys or not key.startswith(verl)}
    assert len(ours) > 15 and ours <= keys | {"min_tokens", "max_tokens"}


def commands() -> list[str]:
    """Lines of the pages that call `tailsieve`, but for Hydra's applications, which have a parser of their own."""
    blocks = [b for p in PAGES for b in re.findall(r"```bash\n(.*?)```", p.read_text(encoding="utf-8"), re.DOTALL)]
    lines = [line.split("   #")[0] for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return sorted({line for line in lines if re.match(r"tailsieve (?!train\b|bench\b)", line)})


@pytest.mark.parametrize("command", commands())
def test_a_command_of_a_page_has_the_options_that_it_is_given(command):
    cli._parse(shlex.split(command, comments=True)[1:])
