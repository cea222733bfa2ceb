"""vLLM's Qwen3.5 can be imported without torchvision, which then is still seen to be absent."""

import subprocess
import sys

TOLERATE = "from tailsieve_rl.platforms.torchvision_absent import NEEDY, tolerate\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_what_needs_it_can_be_imported_and_fails_only_when_it_uses_it():
    code = TOLERATE + (
        "import importlib, sys\n"
        "from transformers.utils import is_torchvision_available\n"
        "tolerate(); tolerate()\n"
        "modules = [importlib.import_module(name) for name in NEEDY]\n"
        "assert 'torchvision' not in sys.modules and not is_torchvision_available()\n"
        "try: importlib.import_module('torchvision')\n"
        "except ModuleNotFoundError: print('absent')\n"
        "try: modules[0].tvF.resize\n"
        "except ImportError as error: print(error)\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "absent",
        "torchvision.transforms.v2.functional.resize was used, and torchvision is not installed",
    ]


def test_this_is_still_needed():
    assert (
        "No module named 'torchvision'" in run(TOLERATE + "import importlib; importlib.import_module(NEEDY[0])").stderr
    )


def test_nothing_stands_in_for_an_installed_torchvision(tmp_path):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("real = True\n")
    code = TOLERATE + (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "tolerate()\n"
        "assert sys.meta_path[0].find_spec(NEEDY[0], None) is None\n"
        "import torchvision; assert torchvision.real\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr[-2000:]
