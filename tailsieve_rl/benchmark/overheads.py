"""What routing itself costs, measured on this machine: `python -m tailsieve_rl.benchmark.overheads --out DIR`.

The job's own coordinator and client, with emulated engines: 512 requests on 8 replicas, as in the paper's step.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.hydra_app import activate_plugin

GROUPS, RESPONSES, REPLICAS = 64, 8, 8
REQUESTS = GROUPS * RESPONSES
PROMPT = [1, 2, 3]
FOREVER = 1_000_000
"""Tokens of a response that only the cutoff ends."""


def own_work_pairs_per_s(rounds: int = 20) -> float:
    """Acquire and release pairs a second of the coordinator's own code, without Ray around it."""
    return asyncio.run(_own_work(rounds))


async def _own_work(rounds: int) -> float:
    from tailsieve_rl.rollout.coordinator import Coordinator

    coordinator = Coordinator({f"replica-{i}": _Engine() for i in range(REPLICAS)}, {})
    names = await coordinator.configure(_policy(), 0, 0.0)
    spent = 0.0
    for step in range(1, rounds + 1):
        plan = _plan(step, names, GROUPS, 0)
        await coordinator.begin_step(plan, dict.fromkeys((g.uid for g in plan.groups), 0), 0.0)
        calls = [(f"{g.uid}.{i}", g.uid, i) for g in plan.groups for i in range(RESPONSES)]
        started = time.perf_counter()
        for call, uid, session in calls:
            await coordinator.acquire(call, uid, session, 1, 0, len(PROMPT))
        for call, _, _ in calls:
            await coordinator.release(call, 1)
        spent += time.perf_counter() - started
    return rounds * REQUESTS / spent


class _Engine:
    """What the coordinator asks of a server at a step's start, answered in the same process."""

    class _Stats:
        def remote(self) -> Any:
            async def answer() -> dict[str, int]:
                return {"global_steps": 0}

            return answer()

    stats = _Stats()


class Rig:
    """A coordinator actor and emulated server actors, called as agent loops call them.

    Args:
        time_scale: seconds of wall time that an emulated second takes.
    """

    def __init__(self, time_scale: float = 1.0):
        import ray

        from tailsieve_rl.engines import SERVER_MAX_CONCURRENCY
        from tailsieve_rl.engines.emulated.server import EmulatedServer
        from tailsieve_rl.engines.emulated.speed import Speed
        from tailsieve_rl.rollout.coordinator import Coordinator
        from tailsieve_rl.simulation.profiles import profile

        speed = Speed.of(profile("qwen3.5-4b"), REQUESTS * 2)
        server = ray.remote(EmulatedServer).options(max_concurrency=SERVER_MAX_CONCURRENCY, num_cpus=0)
        servers = {f"emulated-{i}": server.remote(i, speed, REQUESTS * 2, time_scale, 1) for i in range(REPLICAS)}
        options: Any = ray.remote(Coordinator).options(max_concurrency=SERVER_MAX_CONCURRENCY, num_cpus=0)
        self.coordinator = options.remote(servers, {})
        self.names = ray.get(self.coordinator.configure.remote(_policy(), 0, 600.0, None))
        self._step = 0

    async def begin(self, groups: int, q_next: int) -> Any:
        """Begin a step of fresh groups."""
        self._step += 1
        plan = _plan(self._step, self.names, groups, q_next)
        await self.coordinator.begin_step.remote(plan, dict.fromkeys((g.uid for g in plan.groups), 0), 0.0)
        return plan

    async def pairs_per_s(self, rounds: int) -> tuple[float, list[float]]:
        """Acquire and release pairs a second through Ray, all of a step's at once, and seconds of a lone acquire."""
        from tailsieve_rl.rollout.batched_calls import BatchedCalls

        spent, alone = 0.0, []
        batched = BatchedCalls(self.coordinator)
        for _ in range(rounds):
            plan = await self.begin(GROUPS, 0)
            calls = [(f"{g.uid}.{i}", g.uid, i) for g in plan.groups for i in range(RESPONSES)]
            started = time.perf_counter()
            await asyncio.gather(*(batched.acquire(c, u, s, 1, 0, len(PROMPT)) for c, u, s in calls))
            for call, _, _ in calls:
                batched.release(call, 1)
            await asyncio.sleep(0)  # in which they are sent
            while await self.coordinator.get_total_inflight.remote():
                pass
            spent += time.perf_counter() - started
            for call, uid, session in calls[:50]:
                started = time.perf_counter()
                await batched.acquire(call, uid, session, 1, 0, len(PROMPT))
                alone.append(time.perf_counter() - started)
                batched.release(call, 1)
            await asyncio.sleep(0)  # for the last release to be sent
        return rounds * REQUESTS / spent, alone

    async def empty_calls_per_s(self, rounds: int) -> float:
        """Calls a second of an actor's method that does nothing, all of a step's at once: what Ray itself allows."""
        started = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(*(self.coordinator.alive.remote() for _ in range(REQUESTS)))
        return rounds * REQUESTS / (time.perf_counter() - started)

    async def cutoff_s(self) -> tuple[float, float]:
        """A cutoff with 512 requests in flight on 8 replicas.

        Returns:
            Seconds until every abort is verified, and until every aborted call has returned to its agent loop.
        """
        plan = await self.begin(GROUPS + 1, GROUPS)
        client = _client(self.coordinator)
        first, *others = plan.groups
        running = [asyncio.create_task(_response(client, g.uid, i, FOREVER)) for g in others for i in range(RESPONSES)]
        while await self.coordinator.get_total_inflight.remote() < REQUESTS:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)  # for the calls to arrive at their servers
        for session in range(RESPONSES):
            await _response(client, first.uid, session, 1)
        started = time.perf_counter()
        for session in range(RESPONSES):
            await self.coordinator.response_finished.remote(first.uid, session, 1, 0, 1, (0, 0), None)
        closed = await asyncio.gather(*running)
        returned = time.perf_counter() - started
        assert all(closed), "a response went on after the cutoff"
        await self.coordinator.group_published.remote(first.uid)
        outcome = await self.coordinator.wait_step.remote()
        assert len(outcome.candidates) == GROUPS and len(outcome.consumed) == 1
        return (await self.coordinator.step_extras.remote())["abort_s"], returned


def _client(coordinator: Any) -> Any:
    from omegaconf import OmegaConf

    from tailsieve_rl.rollout.client import TailSieveClient

    config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"name": "emulated", "response_length": FOREVER}}})
    return TailSieveClient(config=config, load_balancer_handle=coordinator)


async def _response(client: Any, uid: str, session: int, tokens: int) -> bool:
    """One response, as an agent loop generates it. Returns whether a cutoff ended it."""
    from tailsieve_rl.rollout.context import RESPONSE, ResponseContext
    from tailsieve_rl.rollout.errors import GroupClosed

    RESPONSE.set(ResponseContext(uid, session, 1))
    params = {"min_tokens": tokens, "max_tokens": tokens}
    try:
        await client.generate(f"{uid}.{session}", prompt_ids=PROMPT, sampling_params=params)
    except GroupClosed:
        return True
    return False


def controller_ms(steps: int = 30) -> dict[str, float]:
    """Median milliseconds of a controller's work in a step: observing it, and deciding on the next."""
    from tailsieve_rl.routing.policies import Setup, default_allocation
    from tailsieve_rl.routing.policies.named import named_policy
    from tailsieve_rl.simulation.profiles import profile
    from tailsieve_rl.simulation.run import Simulation
    from tailsieve_rl.simulation.workloads import math_workload

    setup, model = Setup(GROUPS, RESPONSES, REPLICAS), profile("qwen3.5-4b")
    found = {}
    for name in ("tailsieve_hierarchical", "tailsieve"):
        policy = named_policy(name, setup, default_allocation(setup), None)
        run = Simulation(setup, math_workload(0, RESPONSES), model, policy, records=True)
        state, spent = policy.start(setup), []
        for step in run.steps(steps):
            started = time.perf_counter()
            state = policy.observe(state, step.outcome)
            policy.decide(state, len(step.outcome.candidates))
            spent.append(1e3 * (time.perf_counter() - started))
        found[name] = float(np.median(spent))
    return found


def _policy() -> Any:
    from tailsieve_rl.routing.policies import Uniform

    return Uniform()


def _plan(step: int, names: Sequence[str], groups: int, q_next: int) -> Any:
    from tailsieve_rl.routing.plan import plan_step

    fresh = [f"{step}-{i}" for i in range(groups)]
    return plan_step(step=step, responses=RESPONSES, tail=[], fresh=fresh, q_next=q_next, m=0, replicas=list(names))


async def _through_ray(rounds: int, cutoffs: int) -> dict[str, Any]:
    rig = Rig()
    pairs, alone = await rig.pairs_per_s(rounds)
    times = np.array([await rig.cutoff_s() for _ in range(cutoffs)])
    verified, returned = times.T
    return {
        "pairs_per_s": pairs,
        "empty_calls_per_s": await rig.empty_calls_per_s(rounds),
        "acquire_ms_median": 1e3 * float(np.median(alone)),
        "cutoff_requests": REQUESTS,
        "cutoff_verified_ms_p50_p95": (1e3 * np.percentile(verified, [50, 95])).tolist(),
        "cutoff_returned_ms_p50_p95": (1e3 * np.percentile(returned, [50, 95])).tolist(),
    }


def main(argv: Sequence[str]) -> int:
    """Measure, print, write `<out>/results.json`."""
    parser = argparse.ArgumentParser(prog="python -m tailsieve_rl.benchmark.overheads", description=__doc__)
    parser.add_argument("--out", default="outputs/overheads", help="folder of results.json")
    parser.add_argument("--rounds", type=int, default=10, help="steps of 512 acquires and releases (default 10)")
    parser.add_argument("--cutoffs", type=int, default=20, help="cutoffs that are measured (default 20)")
    options = parser.parse_args(argv)
    activate_plugin()
    import ray

    ray.init(include_dashboard=False, num_cpus=REPLICAS, log_to_driver=False, logging_level="ERROR")
    try:
        results: dict[str, Any] = {"own_work_pairs_per_s": own_work_pairs_per_s(), "controller_ms": controller_ms()}
        results |= asyncio.run(_through_ray(options.rounds, options.cutoffs))
    finally:
        ray.shutdown()
    burst_s = REQUESTS / results["pairs_per_s"]
    print(f"coordinator's own work       {results['own_work_pairs_per_s']:,.0f} acquire and release pairs a second")
    print(
        f"through Ray, 512 at once     {results['pairs_per_s']:,.0f} pairs a second: {burst_s:.2f} s for a step's 512"
    )
    print(f"empty calls, one a message   {results['empty_calls_per_s'] / 2:,.0f} pairs a second")
    print(f"one acquire                  {results['acquire_ms_median']:.2f} ms (median)")
    for what in ("verified", "returned"):
        p50, p95 = results[f"cutoff_{what}_ms_p50_p95"]
        print(f"cutoff, 512 in flight        {p50:.0f} ms (95 %: {p95:.0f} ms) until all aborts are {what}")
    for name, ms in results["controller_ms"].items():
        print(f"{name:<28} {ms:.1f} ms a step")
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(out / "results.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
