#!/usr/bin/env bash
# Every goal of docs/PERFORMANCE.md in one run on one machine: tools/targets.sh [postgres://user:password@host/database]
#
# Takes about an hour and 30 GB of disk, needs wrk for the part over HTTP, anvil (make setup) for the one beside a node, and leaves what needs
# a program that is not there out, with a line that says so. Nothing else should run beside it. Environment: what benches/*.rs take, and
# QUARRY_TARGETS_LOGS (20,000,000), the length of the chain that PostgreSQL is asked about, too, and QUARRY_TARGETS_SHORT (2,000,000), that of the
# chain that it is compared with.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${QUARRY_TARGET_DIR:-$HOME/.cache/quarry-target}}"
database="${1:-}"
logs="${QUARRY_TARGETS_LOGS:-20000000}"
short="${QUARRY_TARGETS_SHORT:-2000000}"
stores="${QUARRY_BENCH_DIR:-$HOME/.cache/quarry-bench}"
failed=0

part() { # a title, and a command with its environment
    printf '\n# %s (%s)\n\n' "$1" "$(date -u +%H:%M:%S)"
    shift
    env "$@" || { failed=1; echo "failed: $*"; }
}
bench() { # the environment's pairs, and the name of the bench last
    local name="${*: -1}"
    set -- "${@:1:$#-1}"
    part "$name $*" "$@" cargo bench --quiet --locked --bench "$name"
}

cargo bench --quiet --locked --no-run || exit 1
echo "cores: $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), commit $(git rev-parse --short HEAD 2>/dev/null), $(date -u +%F)"
bench QUARRY_BENCH_LOGS="$logs" load
bench QUARRY_BENCH_LOGS="$short" load
bench QUARRY_BENCH_LOGS="$short" queries
bench QUARRY_BENCH_LOGS="$logs" queries
if command -v wrk >/dev/null; then
    bench QUARRY_BENCH_LOGS="$short" http
else
    echo "left out: http, for there is no wrk"
fi
bench QUARRY_BENCH_LOGS="$short" QUARRY_BENCH_ONLY=commit parts
if [ -x tools/node_modules/.bin/anvil ]; then
    bench QUARRY_BENCH_NODE=anvil QUARRY_BENCH_LOGS=500000 node
else
    echo "left out: a node, for there is no anvil (make setup)"
fi
bench QUARRY_BENCH_PART=logs QUARRY_BENCH_LOGS=500000 backfill
if [ -n "$database" ]; then
    store=$(ls -d "$stores"/store-v*-seed1-logs"$logs" | sort -V | tail -1)
    served=$(mktemp -d) || exit 1
    trap 'rm -r "$served"' EXIT
    ln -s "$store" "$served/mainnet"
    part "PostgreSQL, $logs logs" "$CARGO_TARGET_DIR/release/quarry" bench --data-dir "$served" --against-postgres "$database" \
        --postgres-logs "$logs" --no-cold --clients 1 --only logs
    part "PostgreSQL, $logs logs, without a cache to speak of" "$CARGO_TARGET_DIR/release/quarry" bench --data-dir "$served" --cache-size 1MiB \
        --against-postgres "$database" --postgres-logs "$logs" --no-cold --clients 1 --only wallet-sparse,address-and
else
    echo "left out: PostgreSQL, for no address was given"
fi
exit "$failed"
