"""Decode profiles of the paper's five configurations on H100: modelled by a roofline, never measured.

The committed files are what is used. `python -m tailsieve_rl.simulation.profiles` writes them anew after a change of
`configurations` or `roofline`, which needs a physical reason.
"""

from pathlib import Path

from tailsieve_rl.routing.decode_model import DecodeModel, load_profile, save_profile
from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS, H100, Configuration
from tailsieve_rl.simulation.profiles.roofline import roofline

PROFILES = tuple(CONFIGURATIONS)
"""Names of the profiles."""

FOLDER = Path(__file__).resolve().parent.parent / "data" / "profiles"


def profile(name: str) -> DecodeModel:
    """The committed profile of one of the paper's configurations.

    Args:
        name: one of PROFILES.

    Raises:
        ValueError: for another name.
    """
    _configuration(name)
    return load_profile(FOLDER / f"{name}.json")


def replicas(name: str) -> int:
    """Replicas of that configuration on the paper's eight GPUs: four of two GPUs, or eight of one (section 4.1)."""
    return _configuration(name).replicas


def write_profiles(folder: str | Path = FOLDER) -> list[Path]:
    """Compute every profile and write it to `<folder>/<name>.json`; returns the files."""
    paths = {name: Path(folder) / f"{name}.json" for name in PROFILES}
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_profile(roofline(CONFIGURATIONS[name], H100), path)
    return list(paths.values())


def _configuration(name: str) -> Configuration:
    if name not in CONFIGURATIONS:
        raise ValueError(f"there is no profile {name!r}, only {', '.join(PROFILES)}")
    return CONFIGURATIONS[name]
