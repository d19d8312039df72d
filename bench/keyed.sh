#!/usr/bin/env bash
# Keyed state of a job of Flink: against the State Processor API and sst_dump, and
# the throughput, the use of two processors and the peak memory of the commands.
# Needs what flink.sh needs, and GNU time. Without sst_dump, of Debian's rocksdb-tools,
# that pair is left out.
#
# KEYS is the number of keys, of which each has four entries, LENGTH the length of a
# value: 1000000 and 1900 make a canonical savepoint of 2 GB, and take 8 GB of TMPDIR.
#
# Except where a line says elapsed, figures are processor time, user and system, of
# the whole process; for the API of its process without the start of the JVM.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/jvm.sh"
keys=${KEYS:-1000000}
(cd "$root" && go build -o "$work/scantables" ./internal/sptest/cmd/scantables)
run spt.oracle.LargeState "$work/s" "$keys" "${LENGTH:-40}" native canonical incremental >"$work/made"
{ read -r native; read -r canonical; read -r incremental; } <"$work/made"
out=$work/out

# timed COMMAND: elapsed and processor time in microseconds, and peak memory in KiB.
# Exit code 1 is that of a diff that found something.
timed() {
	rm -rf "$out"
	code=0
	/usr/bin/time -q -f '%e %U %S %M' -o "$work/time" bash -c "exec $1" >/dev/null 2>"$work/errors" || code=$?
	((code <= 1)) || { echo "failed with $code: $1" >&2; cat "$work/errors" >&2; exit 1; }
	awk '{ printf "%d %d %d\n", $1 * 1e6, ($2 + $3) * 1e6, $4 }' "$work/time"
}

# median3 FILE: the medians of elapsed and processor time, and the largest peak.
median3() { echo "$(cut -d' ' -f1 "$1" | median) $(cut -d' ' -f2 "$1" | median) $(cut -d' ' -f3 "$1" | sort -n | tail -1)"; }

# several COMMAND...: each RUNS times in turn after a warm-up; the lines of median3.
several() {
	local i n
	for n in $(seq 0 "$runs"); do
		for i in $(seq $#); do
			((n > 0)) || : >"$work/t$i"
			if ((n > 0)); then timed "${!i}" >>"$work/t$i"; else timed "${!i}" >/dev/null; fi
		done
	done
	for i in $(seq $#); do median3 "$work/t$i"; done
}

bytes() { du -sb --exclude=_metadata "$1" | cut -f1; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

entries=$((keys * 4))
echo "$entries entries: native $(bytes "$native") bytes, canonical $(bytes "$canonical")"

echo "== entries per second of processor time: inspect --count / State Processor API"
for pair in "native rocksdb" "canonical rocksdb" "canonical hashmap"; do
	read -r kind backend <<<"$pair"
	api=$(run spt.oracle.ReadKeyedState "${!kind}" "$backend")
	[[ $api == *"\"entries\":$entries,"* ]] || { echo "expected $entries entries: $api" >&2; exit 1; }
	theirs=$(field cpu_ns <<<"$api")
	read -r _ ours _ <<<"$(several "$spt inspect --count ${!kind}")"
	printf '%-28s %9d %9d   ratio %s\n' "$pair" $((entries * 1000 / (ours / 1000))) $((entries * 1000 / (theirs / 1000))) "$(ratio "$theirs" "$ours")"
done

if command -v sst_dump >/dev/null; then
	mkdir "$work/tables"
	n=0
	for f in "$native"/*; do # RocksDB's magic number ends a table
		if [[ $(tail -c 8 "$f" | od -An -tx1 | tr -d ' \n') == f7cff485b741e288 ]]; then
			n=$((n + 1))
			ln "$f" "$work/tables/$(printf %06d "$n").sst"
		fi
	done
	scanned=$("$work/scantables" "$work"/tables/*)
	echo "== $scanned entries of $n tables, per second of processor time: scan / sst_dump"
	{ read -r _ ours _; read -r _ theirs _; } <<<"$(several "$work/scantables $work/tables/*" "sst_dump --file=$work/tables --command=check")"
	printf '%-28s %9d %9d   ratio %s\n' "tables" $((scanned * 1000 / (ours / 1000))) $((scanned * 1000 / (theirs / 1000))) "$(ratio "$theirs" "$ours")"
fi

cold() { # drops the files from the page cache
	sync
	for f in "$native"/*; do dd if="$f" iflag=nocache count=0 status=none; done
}
echo "== get, elapsed milliseconds"
printf -v get '%s get %s --state value --key %q' "$spt" "$native" "\"$(printf 'user-%08d' $((keys / 2)))\""
for cache in cold warm; do
	for _ in $(seq "$runs"); do
		[ "$cache" = warm ] || cold
		once "$get"
	done | median | awk -v c="$cache" '{ printf "%-28s %9.1f\n", c, $1 / 1000 }'
done

echo "== MB per second of processor time; elapsed seconds and ratio with 1 and 2 jobs; peak MiB"
# line NAME BYTES COMMAND: with --jobs 1 and 2.
line() {
	local one two
	{ read -r one; read -r two; } <<<"$(several "$3 --jobs 1" "$3 --jobs 2")"
	set -- "$1" "$2" $one $two
	printf '%-28s %9d MB/s %9.2f %9.2f   ratio %s, processor time %s times %6d MiB\n' "$1" $(($2 / $4)) \
		"$(ratio "$3" 1000000)" "$(ratio "$6" 1000000)" "$(ratio "$3" "$6")" "$(ratio "$7" "$4")" $((($5 > $8 ? $5 : $8) / 1024))
}
size=$(bytes "$canonical")
where=$(printf %q "key < \"$(printf 'user-%08d' $((keys / 2)))\"")
line "inspect --count, native" "$size" "$spt inspect --count $native"
line "inspect --count, canonical" "$size" "$spt inspect --count $canonical"
line "cat, native" "$size" "$spt cat $native"
line "convert, incremental" "$size" "$spt convert -q $incremental $out --keyed canonical"
line "filter, a half" "$size" "$spt filter -q $canonical $out --where $where"
line "drop a state" "$size" "$spt drop -q $canonical $out --operator large --state map"
line "rescale to 3, canonical" "$size" "$spt rescale -q $canonical $out --to 3"
line "rescale to 4, native" "$size" "$spt rescale -q $native $out --to 4 --keyed canonical"
line "diff, both, all the same" $((2 * size)) "$spt diff $native $canonical"
line "verify --deep, native" "$size" "$spt verify --deep $native"
line "verify --deep, canonical" "$size" "$spt verify --deep $canonical"
