#!/usr/bin/env bash
# Edits of a _metadata of 200 MB against cp -r; sync, and diff of two savepoints
# of 1 GB against cmp, which only looks for the first byte that differs, in one
# run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
for d in e200 old same other; do mkdir "$work/$d"; done
"$work/mkbig" -size 200 >"$work/e200/_metadata"
"$work/mkbig" -size 1024 >"$work/old/_metadata"
cp "$work/old/_metadata" "$work/same/_metadata"
"$work/mkbig" -size 1024 -seed 1000000 >"$work/other/_metadata"
op=$("$spt" inspect "$work/e200" -o json | grep -o '"id": "[0-9a-f]*"' | head -1 | cut -d'"' -f4)

printf '%-34s %12s    %12s\n' "" spt other
cp="rm -rf $work/p; cp -r $work/e200 $work/p; sync"
pair 'rename / cp -r; sync' "rm -rf $work/o; $spt rename -q $work/e200 $work/o --uid $op=renamed" "$cp"
pair 'set --checkpoint-id / cp -r; sync' "rm -rf $work/o; $spt set -q $work/e200 $work/o --checkpoint-id 7" "$cp"
pair 'filter, a half / cp -r; sync' "rm -rf $work/o; $spt filter -q $work/e200 $work/o --where 'index % 2 == 0'" "$cp"
pair 'diff 2 x 1 GB, the same / cmp' "$spt diff $work/old $work/same" "cmp $work/old/_metadata $work/same/_metadata"
pair 'diff 2 x 1 GB, all other / cmp' "! $spt diff $work/old $work/other" "cmp $work/old/_metadata $work/same/_metadata"
