#!/usr/bin/env bash
# Counting where no element comes twice, by size: prune-union reads one snapshot,
# diff compares it with one whose elements are all different again. Processor time,
# throughput per core, and the largest heap that the garbage collector saw.
# SIZES are megabytes; the default needs 8.5 GB of TMPDIR. Not run in CI.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# measure MEGABYTES NAME COMMAND: exit code 1 is that of a diff that found something.
measure() {
	local trace=$work/trace times=$work/times code=0
	{ TIMEFORMAT='%R %U %S'; time GODEBUG=gctrace=1 bash -c "exec $3" >/dev/null 2>"$trace" || code=$?; } 2>"$times"
	((code <= 1)) || { echo "failed with $code: $3" >&2; tail -3 "$trace" >&2; exit 1; }
	sed -nE 's/^gc .* ([0-9]+)->([0-9]+)->[0-9]+ MB, .*/\2/p' "$trace" | sort -n | tail -1 >"$work/peak"
	awk -v mb="$1" -v name="$2" -v peak="$(cat "$work/peak")" \
		'{ cpu = $2 + $3; printf "%6d MB  %-12s %7.2f s elapsed %7.2f s of processor %6.0f MB/s per core %5d MB of heap\n", mb, name, $1, cpu, mb / cpu, peak }' "$times"
}

for size in ${SIZES:-256 1024 4096}; do
	for seed in 1 1000001; do # subtask i takes seed+i
		mkdir -p "$work/$seed"
		"$work/mkbig" -kind union -size "$size" -seed "$seed" >"$work/$seed/_metadata"
	done
	measure "$size" prune-union "$spt prune-union --tmp $work $work/1"
	measure $((2 * size)) diff "$spt diff --tmp $work $work/1 $work/1000001"
done
