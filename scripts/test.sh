#!/usr/bin/env bash
# Set up what the tests need, then check style, types and run all tests. Arguments go to pytest.
# example: scripts/test.sh tests/unit -k cli
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment test docs

echo "test: ruff"
ruff check --quiet .
echo "test: mypy"
mypy --no-error-summary
echo "test: pytest"
exec pytest --maxfail=3 "$@"
