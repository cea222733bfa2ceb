"""The abort is verified: against a model of vLLM's engine in which requests register late and aborts get lost."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace

import pytest

from tailsieve_rl.engines.vllm.abort import verified_abort
from tailsieve_rl.engines.vllm.flights import REFUSED_IDS_KEPT, Flights


class FakeEngine:
    """As vLLM: an abort of an id that is not registered does nothing and says nothing."""

    def __init__(self, flights):
        self.flights = flights
        self.output_processor = SimpleNamespace(external_req_ids=defaultdict(list))
        self.stops = defaultdict(asyncio.Event)
        self.deaf = self.stuck = False
        self.started = set()

    async def call(self, request_id, registers_after=0.0, lasts=30.0):
        """A generate call, from its arrival at the server to its return: how it ended."""
        with self.flights.open(request_id) as flight:
            if flight.aborted:
                return "refused"
            flight.inside = True
            await asyncio.sleep(registers_after)
            self.output_processor.external_req_ids[request_id].append(request_id)
            self.started.add(request_id)
            flight.tokens = 3
            try:
                await asyncio.wait_for(self.stops[request_id].wait(), lasts)
                flight.finish_reason = "abort"
            except TimeoutError:
                flight.finish_reason = "length"
            self.output_processor.external_req_ids.pop(request_id, None)
            flight.inside = False
            return flight.finish_reason

    async def abort(self, request_ids):
        for request_id in request_ids:
            if request_id in self.output_processor.external_req_ids and not self.deaf:
                self.stops[request_id].set()

    async def is_paused(self):
        if self.stuck:
            await asyncio.sleep(60)


@pytest.fixture
def scenario():
    """Run an async test with an engine."""

    def run(test):
        async def main():
            flights = Flights()
            await asyncio.wait_for(test(FakeEngine(flights), flights), 10)

        asyncio.run(main())

    return run


def test_a_running_request_ends_and_its_tokens_are_told(scenario):
    async def test(engine, flights):
        call = asyncio.create_task(engine.call("a"))
        await asyncio.sleep(0.01)
        report = await verified_abort(engine, flights, ["a"])
        assert (report["aborted"], report["remaining"], report["tokens"]) == (["a"], [], {"a": 3})
        assert await call == "abort"

    scenario(test)


def test_a_request_that_registers_after_its_abort_was_sent_is_caught(scenario):
    async def test(engine, flights):
        call = asyncio.create_task(engine.call("a", registers_after=0.1))
        await asyncio.sleep(0.01)
        report = await verified_abort(engine, flights, ["a"])
        assert report["aborted"] == ["a"] and 0.08 < report["seconds"] < 1
        assert await call == "abort"

    scenario(test)


def test_a_call_that_arrives_after_its_abort_never_starts(scenario):
    async def test(engine, flights):
        report = await verified_abort(engine, flights, ["a"])
        assert report["unknown"] == ["a"]
        assert await engine.call("a") == "refused" and not engine.started
        assert await engine.call("b", lasts=0.01) == "length"

    scenario(test)


def test_a_request_that_ends_by_itself_meanwhile_is_told_apart(scenario):
    async def test(engine, flights):
        engine.deaf = True
        call = asyncio.create_task(engine.call("a", lasts=0.05))
        await asyncio.sleep(0.01)
        report = await verified_abort(engine, flights, ["a"])
        assert (report["finished"], report["aborted"]) == (["a"], [])
        assert await call == "length"

    scenario(test)


def test_a_request_that_stays_is_reported_when_the_time_is_up(scenario):
    async def test(engine, flights):
        engine.deaf = True
        call = asyncio.create_task(engine.call("a", lasts=0.5))
        await asyncio.sleep(0.01)
        report = await verified_abort(engine, flights, ["a"], timeout_s=0.1)
        assert (report["remaining"], report["aborted"]) == (["a"], [])
        await call

    scenario(test)


def test_nothing_is_verified_while_the_engine_core_does_not_answer(scenario):
    async def test(engine, flights):
        engine.stuck = True
        call = asyncio.create_task(engine.call("a"))
        await asyncio.sleep(0.01)
        report = await verified_abort(engine, flights, ["a", "b"], timeout_s=0.1)
        assert (report["remaining"], report["unknown"]) == (["a"], ["b"])
        await call

    scenario(test)


def test_a_call_that_waits_before_the_engine_needs_no_waiting(scenario):
    async def test(engine, flights):
        with flights.open("a") as flight:
            report = await verified_abort(engine, flights, ["a"])
            assert report["aborted"] == ["a"] and report["seconds"] < 0.05
            assert flight.aborted and flights.held_outside() == 1

    scenario(test)


def test_every_id_is_in_exactly_one_list_even_if_asked_for_twice(scenario):
    async def test(engine, flights):
        calls = [asyncio.create_task(engine.call(name, lasts=0.01 * i)) for i, name in enumerate("abcdef", 1)]
        await asyncio.sleep(0.03)
        report = await verified_abort(engine, flights, [*"abcdefgh", *"abc"])
        found = [name for kind in ("aborted", "finished", "unknown", "remaining") for name in report[kind]]
        assert sorted(found) == list("abcdefgh")
        await asyncio.gather(*calls)

    scenario(test)


def test_the_memory_of_refused_ids_is_bounded(scenario):
    async def test(engine, flights):
        await verified_abort(engine, flights, [str(i) for i in range(REFUSED_IDS_KEPT + 10)])
        assert await engine.call("5", lasts=0.01) == "length"
        assert await engine.call(str(REFUSED_IDS_KEPT)) == "refused"

    scenario(test)
