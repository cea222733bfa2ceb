"""An update of the weights reaches an MTP drafter in either of vLLM's model runners."""

from types import SimpleNamespace

import pytest

from tailsieve_rl.engines.vllm.drafter_sync import DraftingWorkerExtension


@pytest.mark.parametrize(
    ("runner", "found"),
    [
        (SimpleNamespace(drafter=SimpleNamespace(model="first")), "first"),
        (SimpleNamespace(speculator=SimpleNamespace(model="second")), "second"),
        (SimpleNamespace(speculator=None), None),
        (SimpleNamespace(drafter=SimpleNamespace()), None),
    ],
)
def test_the_drafter_is_found(runner, found):
    worker = object.__new__(DraftingWorkerExtension)
    worker.model_runner = runner
    assert worker._get_drafter_model() == found
