#!/usr/bin/env bash
# inspect and cat against Flink's own readers: its loader of _metadata, and its
# State Processor API.
#
# Flink's loader is timed inside its process: cold is the first load, classes
# included, warm the median of later ones. The whole process, started for one
# load, is shown too: spt is always a new process.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/jvm.sh"

# ours COMMAND: the median of a command.
ours() {
	local a=$work/a
	once "$1" >/dev/null
	for _ in $(seq "$runs"); do once "$1"; done >"$a"
	median <"$a"
}

line() { printf '%-34s %8d.%03d ms %8d.%03d ms   %d.%d times as long\n' "$1" $(($2 / 1000)) $(($2 % 1000)) $(($3 / 1000)) $(($3 % 1000)) $(($3 / $2)) $(($3 * 10 / $2 % 10)); }

mkdir "$work/u320" "$work/copies" "$work/small"
"$work/mkbig" -size 320 >"$work/u320/_metadata"
"$work/mkbig" -kind copies >"$work/copies/_metadata"
"$work/mkbig" -kind small -operators 200 -subtasks 32 >"$work/small/_metadata"

printf '%-34s %12s    %12s\n' "" spt "Flink $flink"
for s in u320 copies small; do
	x=$(ours "$spt inspect $work/$s")
	loaded=$(run spt.oracle.LoadMetadata "$work/$s")
	start=$(date +%s%N)
	run spt.oracle.LoadMetadata "$work/$s" 0 >/dev/null
	process=$((($(date +%s%N) - start) / 1000))
	cold=$(field cold_ns <<<"$loaded")
	warm=$(field warm_ns <<<"$loaded")
	line "inspect $s / loader, cold" "$x" "$cold"
	line "inspect $s / loader, warm" "$x" "$warm"
	line "inspect $s / process" "$x" "$process"
done

# A million elements, the same list in 100 subtasks. The operator's id is its
# name, padded.
read_by_flink() { run spt.oracle.ReadState "$work/copies" 756e696f6e0000000000000000000000 elements union bytes 1; }
api=$(read_by_flink)
elements=$(sed -n 's/.*"elements":\([0-9]*\).*/\1/p' <<<"$api")
mine=$("$spt" cat "$work/copies" | wc -l)
[ "$elements" = "$mine" ] || { echo "Flink read $elements elements, spt $mine" >&2; exit 1; }
api=$(field cold_ns <<<"$api")
runs=3
line "cat $mine elements / API" "$(ours "$spt cat $work/copies")" "$api"
line "cat --stats / API" "$(ours "$spt cat $work/copies --stats")" "$api"
