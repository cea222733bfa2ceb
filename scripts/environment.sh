# Sourced by the other scripts, from the top of the repository. `environment [EXTRA...]` makes .venv hold this package
# with the engine that fits the machine (extra gpu or cpu) and the extras named, and puts it first on PATH.
# When nothing has changed since the last time it does nothing, silently.

VENV=$PWD/.venv
STAMP=$VENV/tailsieve-environment
LOG=$PWD/outputs/logs/environment.log
TORCH=2.13.0 # as in setup.py (extra cpu) and requirements/overrides.txt

environment() {
    local engine=cpu wanted installed key started=$SECONDS
    if nvidia-smi -L 2>/dev/null | grep -q GPU; then engine=gpu; fi
    wanted=$(printf '%s\n' "$engine" "$@" | sort -u)
    export VIRTUAL_ENV=$VENV PATH=$VENV/bin:$PATH
    unset PYTHONHOME

    # The stamp holds a key, then the extras installed so far.
    key=$(cat setup.py pyproject.toml requirements/overrides.txt tailsieve_rl/__init__.py scripts/environment.sh |
        cksum)" $PWD"
    installed=
    if [ -x "$VENV/bin/python" ] && [ "$(head -n 1 "$STAMP" 2>/dev/null)" = "$key" ]; then
        installed=$(tail -n +2 "$STAMP" | sort -u)
    fi
    if [ -n "$installed" ] && [ -z "$(comm -13 <(echo "$installed") <(echo "$wanted"))" ]; then return; fi
    wanted=$(printf '%s\n' "$wanted" $installed | sort -u)

    mkdir -p "$(dirname "$LOG")"
    : >"$LOG"
    environment_python
    if [ "$engine" = cpu ]; then
        environment_phase "PyTorch $TORCH for the CPU" environment_torch
        environment_phase "verl, vLLM for the CPU and tailsieve-rl (minutes, the first time)" \
            uv pip install --override requirements/overrides.txt --editable ".[$(echo $wanted | tr ' ' ,)]"
    else
        environment_phase "verl, vLLM and tailsieve-rl (minutes, the first time)" \
            uv pip install --editable ".[$(echo $wanted | tr ' ' ,)]"
    fi
    printf '%s\n' "$key" $wanted >"$STAMP"
    echo "environment: ready after $((SECONDS - started)) s"
}

# Make .venv, with uv in it, from a Python that serves.
environment_python() {
    local python
    if ! "$VENV/bin/python" -m pip --version >>"$LOG" 2>&1; then
        for python in python3.11 python3.12 python3 python; do
            # Running it is the only sure test: version managers put names on PATH that do not start.
            if "$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
                >>"$LOG" 2>&1; then break; fi
            python=
        done
        if [ -z "$python" ]; then
            echo "environment: error: needs Python 3.11 or 3.12 on PATH, with its venv module" >&2
            exit 1
        fi
        environment_phase ".venv, with $("$python" --version)" "$python" -m venv --clear "$VENV"
    fi
    if ! "$VENV/bin/python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))'; then
        echo "environment: error: .venv is not of Python 3.11 or 3.12; remove it and run this again" >&2
        exit 1
    fi
    [ -x "$VENV/bin/uv" ] || environment_phase "the installer uv" "$VENV/bin/python" -m pip install uv
}

# A CPU build comes from what pip is configured to look at, else from PyTorch's own index (which uv knows), else the
# package index's default build, which is larger and serves too. With any of them present, this does nothing.
environment_torch() {
    "$VENV/bin/python" -c "import sys, importlib.metadata as m; sys.exit(m.version('torch').split('+')[0] != '$TORCH')" ||
        "$VENV/bin/python" -m pip install "torch==$TORCH+cpu" ||
        uv pip install --torch-backend=cpu "torch==$TORCH" ||
        "$VENV/bin/python" -m pip install "torch==$TORCH"
}

# environment_phase WHAT COMMAND...: one line for the user, all output to the log.
environment_phase() {
    local what=$1
    shift
    echo "environment: installing $what"
    if ! "$@" >>"$LOG" 2>&1; then
        echo "environment: error: installing $what failed; the end of $LOG:" >&2
        tail -n 15 "$LOG" >&2
        exit 1
    fi
}
