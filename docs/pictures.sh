#!/usr/bin/env bash
# Makes the pictures of the documentation from testdata, with Chromium:
#   docs/pictures.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/spt" ./cmd/spt
cp -r testdata/savepoints/sp-00{1,2,7,9} testdata/savepoints/flink-2.0-union-inflated/savepoint "$work"

page() { # NAME HEIGHT SP...: docs/NAME.png
	local name=$1 height=$2
	shift 2
	(cd "$work" && ./spt report -q "$@" -o report.html --overwrite)
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,"$height" \
		--user-data-dir="$work/chromium" --screenshot="docs/$name.png" "file://$work/report.html" 2>/dev/null
}
page report 1240 sp-002
page report-union 1580 savepoint
