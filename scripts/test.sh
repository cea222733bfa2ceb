#!/usr/bin/env bash
# Set up what the tests need, then check style, types and run all tests. Arguments go to pytest.
# example: scripts/test.sh tests/unit -k cli
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment test docs

# The report page is opened in Chromium. CI's machine gets it; on yours, install it if you want these tests to run.
IN_BROWSER=tests/unit/telemetry/test_page_in_browser.py LEFT_OUT=()
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    mkdir -p "$(dirname "$LOG")"
    echo "environment: installing chromium"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >>"$LOG" 2>&1 ||
        environment_error "installing chromium failed; what was tried is in $LOG"
fi
if [ "${CI:-}" != true ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
    echo "test: no chromium on PATH, $IN_BROWSER is left out"
    LEFT_OUT=(--ignore="$IN_BROWSER")
fi

echo "test: ruff"
ruff check --quiet .
echo "test: mypy"
mypy --no-error-summary
echo "test: pytest"
# One process for the tests with engines (tests/conftest.py), one for all others beside it.
exec pytest --maxfail=3 --numprocesses=2 --dist=loadscope --no-loadscope-reorder ${LEFT_OUT[@]+"${LEFT_OUT[@]}"} "$@"
