#!/usr/bin/env bash
# Make this machine a node of a Ray cluster for a job on several nodes (docs/multi_node.md): `head` on the first one, which
# prints the address, `join ADDRESS` on the others. Further arguments go to `ray start`.
# example: scripts/ray_node.sh head
# example: scripts/ray_node.sh join 10.0.0.1:6379
set -euo pipefail

usage() {
    echo "usage: scripts/ray_node.sh head [ARGUMENT ...] | join ADDRESS [ARGUMENT ...]" >&2
    exit 2
}

# Ray asks for its token where a head finds one, and a node that does not know it cannot join: the mode is said on each.
export RAY_AUTH_MODE=${RAY_AUTH_MODE:-token} RAY_USAGE_STATS_ENABLED=${RAY_USAGE_STATS_ENABLED:-0}

# Ray hands this node's environment to all that runs here: every node needs the same packages.
python -c "import tailsieve_rl, verl" || {
    echo "scripts/ray_node.sh: error: tailsieve-rl or verl is not installed for $(command -v python)" >&2
    exit 1
}
case "${1:-}" in
head)
    port=${RAY_PORT:-6379}
    echo "on the other nodes: scripts/ray_node.sh join $(hostname -I | cut -d' ' -f1):$port"
    exec ray start --head --port="$port" --include-dashboard=false "${@:2}"
    ;;
join)
    [ $# -ge 2 ] || usage
    exec ray start --address="$2" "${@:3}"
    ;;
*) usage ;;
esac
