"""The benchmark's ratios do not fall: measured in virtual time, where they are the same on every machine."""

import json
from pathlib import Path

import pytest

from tailsieve_rl.benchmark.cell import judged
from tailsieve_rl.benchmark.virtual import VirtualCell
from tailsieve_rl.config.rollout_only import RolloutOnlySettings
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.workloads import WORKLOADS

STORED = Path(__file__).resolve().parents[2] / "docs" / "data" / "bench-simulated.json"
"""What `tailsieve bench --config-name bench/simulated` wrote, with the models and workloads of docs/results.md."""

TOLERANCE = 0.01
"""Share of a stored speedup that may be lost: a different numpy may round a length differently, not more."""

CELLS = [("qwen3.5-35b-a3b-tp2", "math"), ("qwen3.5-4b", "code")]


@pytest.mark.parametrize(("model", "workload"), CELLS)
def test_no_speedup_falls_below_the_stored_one(model: str, workload: str) -> None:
    stored = json.loads(STORED.read_text())
    [cell] = [c for c in stored["cells"] if (c["model"], c["workload"]) == (model, workload)]
    compared = RolloutOnlySettings(policies=tuple(cell["policies"]))
    setup = Setup(cell["groups"], cell["responses"], cell["replicas"], capacity=512)
    lengths = WORKLOADS[f"{workload}_stepwise"](stored["seed"], setup.responses)
    reserve = setup.groups * (compared.last + 1)
    found = judged(VirtualCell(setup, lengths, profile(model), reserve).rounds(compared))
    fallen = {
        name: (measured["speedup"], cell["policies"][name]["speedup"])
        for name, measured in found.items()
        if measured["speedup"] < (1 - TOLERANCE) * cell["policies"][name]["speedup"]
    }
    assert fallen == {}
