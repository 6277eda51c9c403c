#!/bin/sh
# Makes the four demo models from nothing: models/demo/train.sh [OUT]   (default OUT: build/demo-model in the repository)
# INSTALL=1 also copies them beside this script and renews SHA256SUMS. Needs python3 with numpy and torch; on Debian:
#   apt-get install --no-install-recommends python3-torch python3-numpy libopenblas0-openmp
# PYTHON chooses the interpreter, THREADS the number of torch threads (kill -USR1 switches a training between 1 and 2).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../build/demo-model}
python=${PYTHON:-python3}
threads=${THREADS:-2}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
export PYTHONDONTWRITEBYTECODE=1

# Freed tensors stay in the heap instead of going back to the kernel with every step, and idle OpenMP threads sleep.
train() {
    MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=99999999999 MALLOC_TOP_PAD_=268435456 OMP_WAIT_POLICY=passive \
        "$python" train.py "$@"
}

echo "== corpora and tokenizer"
"$python" build_data.py "$out/main" --mix main --rows 130000 --seed 11
"$python" build_data.py "$out/finish" --mix finish --rows 70000 --seed 21 --merges "$out/main/merges.json"
"$python" build_data.py "$out/polish" --mix polish --rows 50000 --seed 31 --merges "$out/main/merges.json"
"$python" build_data.py "$out/anchor" --mix anchor --rows 46000 --seed 41 --merges "$out/main/merges.json"
"$python" build_data.py "$out/widen" --mix widen --rows 19000 --seed 51 --merges "$out/main/merges.json"

echo "== stage 1: everything, at a constant rate"
train "$out/main" "$out/stage1.pt" --seed 1 --steps 4600 --stop 1650 --flat .35 --threads "$threads"

echo "== stage 2: more ways of asking, tools under any name; the rate falls to half"
train "$out/finish" "$out/stage2.pt" --init "$out/stage1.pt" --seed 2 --steps 1900 --stop 1200 --flat .2 \
    --muon-lr .018 --threads "$threads"

echo "== stage 3: only what is to stay, more refusals and small talk"
train "$out/polish" "$out/stage3.pt" --init "$out/stage2.pt" --seed 3 --steps 1600 --stop 1000 --flat 0 \
    --muon-lr .01 --lr .0016 --threads "$threads"

echo "== stage 4: the same with the plainest questions more often; the rate falls to nothing"
train "$out/anchor" "$out/stage4.pt" --init "$out/stage3.pt" --seed 4 --steps 1350 --flat .1 \
    --muon-lr .0042 --lr .0007 --threads "$threads"

echo "== stage 5: more kinds of requests to refuse, more tools under names that can only be copied"
train "$out/widen" "$out/demo.pt" --init "$out/stage4.pt" --seed 6 --steps 552 --flat .384 \
    --muon-lr .004 --lr .0007 --threads "$threads"

echo "== draft"
train "$out/anchor" "$out/draft.pt" --shape draft --steps 1200 --flat .3 --seed 1 --threads 1

echo "== files"
"$python" export.py "$out/demo.pt" "$out/main/merges.json" "$out/chasqui-demo.gguf"
"$python" export.py "$out/draft.pt" "$out/main/merges.json" "$out/chasqui-draft.gguf" --name chasqui-draft
"$python" embed_rerank.py "$out"

echo "== figures"
cat "$out"/main/prompts.txt "$out"/finish/prompts.txt "$out"/polish/prompts.txt \
    "$out"/anchor/prompts.txt "$out"/widen/prompts.txt > "$out/prompts.txt"
"$python" evaluate.py --gguf "$out/chasqui-demo.gguf" --prompts "$out/prompts.txt" --json "$out/figures.json"
(cd "$out" && sha256sum chasqui-*.gguf | tee SHA256SUMS)
if [ "${INSTALL:-0}" = 1 ]; then
    cp "$out"/chasqui-*.gguf "$out/SHA256SUMS" "$here"
fi
