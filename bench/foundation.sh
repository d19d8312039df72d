#!/usr/bin/env bash
# inspect, convert and copy against cat, tar | zstd and cp -r, in one run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
for d in u320 u1024 copies small; do mkdir "$work/$d"; done
"$work/mkbig" -size 320 >"$work/u320/_metadata"
"$work/mkbig" -size 1024 >"$work/u1024/_metadata"
"$work/mkbig" -kind copies >"$work/copies/_metadata"
"$work/mkbig" -kind small -operators 200 -subtasks 32 >"$work/small/_metadata"
"$spt" convert -q "$work/u320" "$work/files" --inline-threshold 1KiB >/dev/null

printf '%-34s %12s    %12s\n' "" spt other
alone 'spt --help' "$spt --help"
pair 'inspect 320 MB / cat' "$spt inspect $work/u320" "cat $work/u320/_metadata"
pair 'inspect 1 GB / cat' "$spt inspect $work/u1024" "cat $work/u1024/_metadata"
alone 'inspect 6,400 small states' "$spt inspect $work/small"
if command -v zstd >/dev/null; then
	pair 'convert to .spt / tar | zstd -3' "rm -f $work/o.spt; $spt convert -q $work/copies $work/o.spt" \
		"tar -C $work -cf - copies | zstd -3 --long=27 -q -f -o $work/o.tzst"
	printf '%-34s %12d bytes %9d bytes\n' 'sizes' "$(stat -c %s "$work/o.spt")" "$(stat -c %s "$work/o.tzst")"
fi
pair 'copy, 300 files / cp -r; sync' "rm -rf $work/o; $spt convert -q $work/files $work/o --to flink" "rm -rf $work/p; cp -r $work/files $work/p; sync"
pair 'copy, 1 GB _metadata / cp -r; sync' "rm -rf $work/o; $spt convert -q $work/u1024 $work/o --to flink" "rm -rf $work/p; cp -r $work/u1024 $work/p; sync"
