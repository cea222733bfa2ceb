# Sourced by the run scripts of this folder: _run.sh MODEL ROUTING [OVERRIDE ...] runs paper/MODEL_ROUTING, with drafts if
# SPECULATION says so.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
model=$1 routing=$2
shift 2
case "${SPECULATION:-none}" in
none) recipe=${model}_$routing ;;
*) recipe=${model}_${routing}_$SPECULATION ;;
esac
if [ ! -f "recipes/paper/$recipe.yaml" ]; then
    echo "$0: error: SPECULATION=${SPECULATION:-none} ROUTING=$routing: there is no recipe paper/$recipe" >&2
    exit 2
fi
if [[ " $* " != *" +try="* && " $* " != *" data.train_files="* && ! -f outputs/data/deepscaler_train.parquet ]]; then
    echo "$0: error: there are no prompts yet; make them with" >&2
    echo "  tailsieve data deepscaler --out outputs/data --tokenizer Qwen/Qwen3.5-${model#qwen3.5-}" >&2
    echo "  tailsieve data math500 --out outputs/data" >&2
    exit 2
fi
exec tailsieve train --config-name "paper/$recipe" "$@"
