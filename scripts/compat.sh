#!/usr/bin/env bash
# Measure which versions work: an environment for each row of the matrix, the live tests and the drop-in test in it, and
# the table in the README. Hours of download and tests; not a part of CI. Rows that are done are not run again.
# example: scripts/compat.sh --dir outputs/compat --delete verl-0.9.0 vllm-0.24.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/compat.py "$@"
