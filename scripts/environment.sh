# Sourced by the other scripts, from the top of the repository. `environment [EXTRA...]` makes .venv hold this package,
# with vLLM's CPU engine, what figures need, and the extras named, and puts it first on PATH. The demo and the tests run
# on CPU engines on every machine, also on one with GPUs; for training on those, `pip install -e '.[gpu]'` into an
# environment of yours. When nothing has changed since the last time it does nothing, silently.

# Where, and with which versions: compat.sh has other values than these.

VENV=$PWD/.venv
LOG=$PWD/outputs/logs/environment.log
OVERRIDES=requirements/overrides.txt
PYTHONS="python3.11 python3.12 python3 python" # the first one that serves is taken

environment() {
    local extras installed key stamp=$VENV/tailsieve-environment started=$SECONDS
    extras=$(printf '%s\n' cpu report "$@")
    export VIRTUAL_ENV=$VENV PATH=$VENV/bin:$PATH
    unset PYTHONHOME

    # The stamp holds a key of what was installed, then the extras, one a line.
    key="$(cat setup.py "$OVERRIDES" tailsieve_rl/__init__.py scripts/environment.sh | cksum) $PWD"
    if [ -x "$VENV/bin/python" ] && [ "$(head -n 1 "$stamp" 2>/dev/null)" = "$key" ]; then
        installed=$(tail -n +2 "$stamp")
        if ! grep -qvxF "$installed" <<<"$extras"; then
            environment_compile
            return
        fi
        extras=$(printf '%s\n' "$extras" "$installed" | sort -u)
    fi

    mkdir -p "$(dirname "$LOG")"
    : >"$LOG"
    rm -f "$stamp"
    environment_python
    local package torch
    package=".[$(paste -sd, <<<"$extras")]"
    torch=$(sed -n 's/^torch==//p' "$OVERRIDES")
    environment_install "PyTorch $torch for the CPU" environment_torch "$torch"
    environment_install "verl, vLLM for the CPU, and tailsieve-rl (minutes, the first time)" \
        uv pip install --compile-bytecode --override "$OVERRIDES" --editable "$package"
    environment_compile
    printf '%s\n' "$key" "$extras" >"$stamp"
    echo "environment: ready after $((SECONDS - started)) s"
}

# Each of a job's many processes would compile it anew where Python may not write what it compiled.
environment_compile() {
    python -m compileall -q tailsieve_rl
}

# Make the environment, with the installer uv in it, from a Python that serves.
environment_python() {
    local serves='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' python
    if ! "$VENV/bin/python" -m pip --version >>"$LOG" 2>&1; then
        for python in $PYTHONS ""; do
            # Only running it tells: version managers put names on PATH that do not start.
            if "$python" -c "$serves" >>"$LOG" 2>&1; then break; fi
        done
        [ -n "$python" ] || environment_error "needs Python 3.11 or 3.12, with its venv module, on PATH as ${PYTHONS// /, }"
        environment_install "$("$python" --version) into ${VENV#"$PWD/"}" "$python" -m venv --clear "$VENV"
    elif ! "$VENV/bin/python" -c "$serves" >>"$LOG" 2>&1; then
        environment_error "${VENV#"$PWD/"} has another Python than 3.11 or 3.12; remove it and run this again"
    fi
    [ -x "$VENV/bin/uv" ] || environment_install "uv into ${VENV#"$PWD/"}" "$VENV/bin/python" -m pip install uv
}

# environment_torch VERSION. A build for the CPU comes from where pip is configured to look, else from PyTorch's own
# index, which uv knows; else the package index's default build has to do, which is larger. An installed one stays.
environment_torch() {
    "$VENV/bin/python" -c "import torch, sys; sys.exit(torch.__version__.split('+')[0] != '$1')" ||
        "$VENV/bin/python" -m pip install "torch==$1+cpu" ||
        uv pip install --torch-backend=cpu "torch==$1" ||
        "$VENV/bin/python" -m pip install "torch==$1"
}

# environment_install WHAT COMMAND...: one line for the user, the command's output to the log.
environment_install() {
    local what=$1
    shift
    echo "environment: installing $what"
    "$@" >>"$LOG" 2>&1 || environment_error "installing $what failed"
}

environment_error() {
    echo "environment: error: $1; what was tried is in $LOG, which ends with:" >&2
    tail -n 10 "$LOG" >&2
    exit 1
}
