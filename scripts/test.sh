#!/usr/bin/env bash
# Set up what the tests need and run them all: lint, types, tests. Arguments go to pytest.
# example: scripts/test.sh tests/unit -k cli
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment test

phase() {
    echo "test: $*"
    "$@"
}
phase ruff check --quiet .
phase mypy --no-error-summary
phase pytest --maxfail=3 "$@"
