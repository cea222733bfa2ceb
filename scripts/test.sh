#!/usr/bin/env bash
# Set up what the tests need, then check style, types and run all tests. Arguments go to pytest.
# example: scripts/test.sh tests/unit -k cli
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment test docs

# The report page is opened in Chromium. CI's machine gets it; on yours, install it if you want these tests to run.
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    mkdir -p "$(dirname "$LOG")"
    echo "environment: installing chromium"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >>"$LOG" 2>&1 ||
        echo "environment: installing chromium failed, its tests will be skipped; what was tried is in $LOG" >&2
fi

echo "test: ruff"
ruff check --quiet .
echo "test: mypy"
mypy --no-error-summary
echo "test: pytest"
# One process for the tests with engines (tests/conftest.py), one for all others beside it.
exec pytest --maxfail=3 --numprocesses=2 --dist=loadscope --no-loadscope-reorder "$@"
