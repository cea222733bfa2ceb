#!/usr/bin/env bash
# Write what of the documentation is made from the code: docs/configuration.md from the settings classes, and a page of each
# module from its docstrings, in outputs/api. What cannot be rendered is an error.
# example: scripts/docs.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment docs

mkdir -p outputs/logs
python -m tailsieve_rl.config.reference >outputs/configuration.md
mv outputs/configuration.md docs/configuration.md
echo docs/configuration.md

# pdoc imports every module, verl and vLLM with them, which takes a minute. Of a package with __all__ it would leave out the
# modules in it: so all are named, also those that it finds itself. Imports may start programs (uname) only if it is told.
LOG=outputs/logs/docs.log
modules() { find tailsieve_rl -name '*.py' ! -name __main__.py | sed 's|/__init__\.py$||; s|\.py$||; s|/|.|g'; }
export PDOC_ALLOW_EXEC=1 PYTHONWARNINGS="ignore:The module specification"
if ! python -m pdoc --docformat google --output-directory outputs/api $(modules) >"$LOG" 2>&1 || grep "^Warn:" "$LOG"; then
    echo "docs: error: not everything can be rendered; pdoc's output is in $LOG" >&2
    exit 1
fi
echo outputs/api/index.html
