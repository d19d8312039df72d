# What the benchmark scripts share: build spt, time commands in turn, print the
# median of each and the ratio. Only bash, coreutils and Go are needed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/spt-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
runs=${RUNS:-5}
(cd "$root" && go build -trimpath -o "$work/spt" ./cmd/spt && go build -o "$work/mkbig" ./internal/sptest/cmd/mkbig)
spt=$work/spt

# once COMMAND: seconds that it takes; its output is thrown away.
once() {
	local start end
	start=$(date +%s%N)
	bash -c "$1" >/dev/null 2>&1 || { echo "failed: $1" >&2; exit 1; }
	end=$(date +%s%N)
	echo $(((end - start) / 1000))
}

median() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

# pair NAME OURS THEIRS: both in turn, a warm-up each, then the medians in
# milliseconds and ours in parts of theirs.
pair() {
	local a=$work/a b=$work/b
	: >"$a"; : >"$b"
	once "$2" >/dev/null; once "$3" >/dev/null
	for _ in $(seq "$runs"); do
		once "$2" >>"$a"
		once "$3" >>"$b"
	done
	local x y
	x=$(median <"$a"); y=$(median <"$b")
	printf '%-34s %8d.%03d ms %8d.%03d ms   ratio %d.%02d\n' "$1" $((x / 1000)) $((x % 1000)) $((y / 1000)) $((y % 1000)) $((x / y)) $((x * 100 / y % 100))
}

# alone NAME COMMAND: the median, and the peak of memory where /proc tells.
alone() {
	local a=$work/a
	: >"$a"
	once "$2" >/dev/null
	for _ in $(seq "$runs"); do once "$2" >>"$a"; done
	local x
	x=$(median <"$a")
	printf '%-34s %8d.%03d ms\n' "$1" $((x / 1000)) $((x % 1000))
}
