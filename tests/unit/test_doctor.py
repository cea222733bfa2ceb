"""The doctor names what would fail, with a mend for each, and is silent about nothing."""

import dataclasses

import pytest

from tailsieve_rl import doctor, versions

GIB = 1 << 30
HEALTHY = doctor.Facts(
    versions={
        **{name: known.tested[0] for name, known in versions.KNOWN.items()},
        "python": "3.11.9",
        "torch": "2.13.0+cpu",
        "vllm": "0.30.0+cpu",
    },
    entry_point="tailsieve_rl.plugin",
    probe={
        "extras": {},
        "loaded_by_verl": True,
        "parts": {"trainer mode": "ok"},
        "cpu_selected": True,
        "accelerator": "",
        "torch_build": "cpu",
    },
    cores=2,
    memory_free=20 * GIB,
    memory_total=24 * GIB,
    shared_memory_free=8 * GIB,
)
ON_GPU = {"cpu_selected": False, "accelerator": "cuda", "torch_build": "cuda"}


def facts(**changes):
    """HEALTHY with other values; those for `versions` and `probe` are merged into them."""
    for name in ("versions", "probe"):
        changes[name] = {**getattr(HEALTHY, name), **changes.get(name, {})}
    return dataclasses.replace(HEALTHY, **changes)


def levels(found):
    return {item.what: item.level for item in doctor.check(found) if item.level != doctor.OK}


def test_a_healthy_machine_gets_a_clean_bill():
    assert levels(HEALTHY) == {}
    assert doctor.render(doctor.check(HEALTHY)).endswith("all is well")


def test_a_healthy_gpu_machine_gets_a_clean_bill():
    assert levels(facts(versions={"vllm": "0.30.0", "torch": "2.13.0+cu130"}, probe=ON_GPU)) == {}


def test_an_untested_version_is_a_warning_and_a_missing_package_a_failure():
    assert levels(facts(versions={"ray": "2.99.0", "verl": None})) == {"ray": "warn", "verl": "FAIL"}


def test_a_version_that_cannot_work_is_refused_with_the_reason():
    [found] = [item for item in doctor.check(facts(versions={"verl": "0.8.0"})) if item.level != doctor.OK]
    assert found.level == doctor.FAIL and "0.8.0 cannot work: it has no V1 trainer" in found.found


def test_a_version_that_works_in_part_says_what_is_refused():
    found = doctor.check(facts(versions={"vllm": "0.24.0+cpu"}))
    [said] = [item for item in found if item.what == "speculation"]
    assert said.level == doctor.WARN and said.found.startswith("refused with vllm 0.24.0: ")


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"entry_point": None, "probe": {"loaded_by_verl": False}}, "plug-in"),
        ({"external_plugins": "none", "probe": {"loaded_by_verl": False}}, "plug-in"),
        ({"probe": {"loaded_by_verl": False}}, "plug-in"),
        ({"probe": {"error": "ImportError: libfoo.so"}}, "plug-in"),
        ({"probe": {"parts": {"trainer mode": "ImportError: x"}}}, "plug-in: trainer mode"),
        ({"probe": {"parts": {"trainer mode": "waiting for its verl module"}}}, "plug-in: trainer mode"),
        ({"probe": {"extras": {"torchvision": "operator torchvision::nms does not exist"}}}, "torchvision"),
        ({"memory_free": 2 * GIB}, "memory"),
        ({"shared_memory_free": 64 << 20}, "shared memory"),
        ({"probe": {"cpu_selected": False, "torch_build": "cuda"}}, "device"),
        ({"probe": ON_GPU}, "vllm build"),
        ({"versions": {"vllm": "0.30.0"}}, "vllm build"),
    ],
)
def test_each_thing_that_would_fail_is_named_with_a_mend(changes, failing):
    found = facts(**changes)
    assert levels(found) == {failing: "FAIL"}
    assert all(item.mend for item in doctor.check(found) if item.level == doctor.FAIL)


def test_the_module_variable_serves_in_place_of_an_entry_point():
    assert levels(facts(entry_point=None, external_modules="other,tailsieve_rl.plugin")) == {}


def test_little_memory_is_a_warning_before_it_is_a_failure():
    assert levels(facts(memory_free=6 * GIB)) == {"memory": "warn"}


def test_a_process_that_cannot_import_verl_is_reported_and_not_raised(monkeypatch):
    monkeypatch.setattr(doctor.sys, "executable", "/bin/false")
    assert "ended with code 1" in doctor._probe()["error"]


@pytest.mark.parametrize(
    ("found", "code"), [(HEALTHY, 0), (facts(memory_free=0), 1), (facts(versions={"ray": "9"}), 0)]
)
def test_the_exit_code_tells_whether_a_job_would_fail(monkeypatch, capsys, found, code):
    monkeypatch.setattr(doctor, "gather", lambda: found)
    assert doctor.run() == code
    assert len(capsys.readouterr().out.splitlines()) < 25


def test_versions_that_differ_are_listed_with_the_tested_ones(monkeypatch):
    monkeypatch.setattr(versions, "installed", {**HEALTHY.versions, "verl": "0.8.0", "ray": None}.get)
    assert versions.untested() == ["verl 0.8.0 (tested: 0.9.1 and 0.9.0)"]
