#!/usr/bin/env bash
# prune-union against cp -r and tar | zstd -3, in one run: a union state of a
# million elements, 10,000 that a restore multiplied by 100, 107 MB in 101 files.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir "$work/one" "$work/distinct"
"$work/mkbig" -kind copies >"$work/one/_metadata"
"$work/mkbig" -kind union >"$work/distinct/_metadata"
"$spt" convert -q "$work/one" "$work/in" --inline-threshold 1KiB >/dev/null
echo "$(find "$work/in" -type f | wc -l) files, $(du -sb "$work/in" | cut -f1) bytes"

out="rm -rf $work/o $work/o.spt"
copy="rm -rf $work/p; cp -r $work/in $work/p"
pack="tar -C $work -cf $work/p.tar.zst -I 'zstd -3 -q' in"
printf '%-34s %12s    %12s\n' "" spt other
pair 'diagnose / cp -r' "$spt prune-union $work/in" "$copy"
pair 'diagnose, all different / cp -r' "$spt prune-union $work/distinct" "rm -rf $work/p; cp -r $work/distinct $work/p"
for keep in distinct copies first-subtask modulo; do
	pair "--keep $keep / cp -r" "$out; $spt prune-union -q $work/in $work/o --keep $keep" "$copy"
done
latest="--keep latest-by --by value --accept-unproven"
pair '--keep latest-by / cp -r' "$out; $spt prune-union -q $work/in $work/o $latest" "$copy"
pair '--keep latest-by, all different' "$out; $spt prune-union -q $work/distinct $work/o $latest" "rm -rf $work/p; cp -r $work/distinct $work/p"
pair '--keep distinct to .spt / cp -r' "$out; $spt prune-union -q $work/in $work/o.spt --keep distinct" "$copy"
if command -v zstd >/dev/null; then
	pair 'diagnose / tar | zstd -3' "$spt prune-union $work/in" "$pack"
	pair '--keep distinct / tar | zstd -3' "$out; $spt prune-union -q $work/in $work/o --keep distinct" "$pack"
fi
for command in "$spt prune-union $work/in" "$spt prune-union -q $work/in $work/o --keep distinct" "$spt prune-union $work/distinct" \
	"$spt prune-union -q $work/in $work/o $latest" "$spt prune-union -q $work/distinct $work/o $latest"; do
	rm -rf "$work/o"
	if [ -x /usr/bin/time ]; then
		/usr/bin/time -f "peak memory %M KiB: ${command//"$work"\//}" bash -c "$command" 2>&1 >/dev/null | tail -1
	fi
done
