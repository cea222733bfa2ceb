"""Table 4: routing gains at larger N, in cells that others can read."""

import pytest

from tailsieve_rl.simulation.experiments import Options, concurrency


@pytest.fixture(scope="module")
def results():
    return concurrency.run(Options(repeats=3), groups=(64, 128), models=("qwen3.5-35b-a3b-tp2",))


def test_every_cell_has_the_keys_that_others_rely_on(results):
    assert [(cell["workload"], cell["groups"]) for cell in results["cells"]] == [
        ("math", 64),
        ("math", 128),
        ("code", 64),
        ("code", 128),
    ]
    for cell in results["cells"]:
        assert {"model", "workload", "groups", "replicas", "best_static_s", "bound_s", "policies"} <= cell.keys()
        assert list(cell["policies"]) == ["uniform", "least_loaded", "tailsieve"]
        for policy in cell["policies"].values():
            assert {"step_s", "speedup", "ci95", "q", "m", "draft_depth_tail", "draft_depth_bulk"} <= policy.keys()


def test_tailsieve_is_faster_than_uniform_on_average_at_every_size(results):
    for mean in results["means"]:
        assert mean["tailsieve"] > 1.02, mean


def test_no_policy_beats_the_longest_response_alone(results):
    for cell in results["cells"]:
        assert cell["bound_s"] < cell["policies"]["uniform"]["step_s"]
        assert cell["bound_s"] < 1.05 * min(policy["step_s"] for policy in cell["policies"].values())


def test_the_papers_numbers_stand_beside_ours(results):
    assert [cell["paper_speedup"] for cell in results["cells"]] == [1.346, 1.199, 1.670, 1.214]
    assert concurrency.PAPER["qwen3-4b", "code"] == (1.442, 1.367, 1.248)


def test_the_figure_is_drawn(results, tmp_path):
    for path in concurrency.draw(results, tmp_path):
        assert path.stat().st_size > 20_000
