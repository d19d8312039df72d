#!/usr/bin/env bash
# S3 against rclone, on one server (versitygw) on this machine: the bytes of one object,
# snapshots of one large file and of 100 files, and 10,000 snapshots.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
tool() { # MODULE PACKAGE NAME
	(cd "$root/tools/$1" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$work/$3" "$2")
}
tool servers github.com/versity/versitygw/cmd/versitygw versitygw
tool rclone github.com/rclone/rclone rclone
(cd "$root" && go build -trimpath -o "$work/catobject" ./internal/sptest/cmd/catobject)

export AWS_ACCESS_KEY_ID=benchkey AWS_SECRET_ACCESS_KEY=benchsecret AWS_REGION=us-east-1 AWS_ENDPOINT_URL_S3=http://127.0.0.1:17170
mkdir -p "$work/buckets/bench"
requests=$work/requests.log
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY "$work/versitygw" -q --keep-alive --region us-east-1 --health /health \
	--access-log "$requests" --port 127.0.0.1:17170 posix "$work/buckets" >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
until curl -sf http://127.0.0.1:17170/health >/dev/null; do
	kill -0 $server || { cat "$work/server.log" >&2; exit 1; }
	sleep 0.1
done
cat >"$work/rclone.conf" <<CONF
[s]
type = s3
provider = Other
env_auth = true
endpoint = $AWS_ENDPOINT_URL_S3
region = us-east-1
force_path_style = true
CONF
rclone="$work/rclone --config $work/rclone.conf --s3-no-check-bucket"

snapshot() { # NAME OPTIONS: union state, each subtask in a file of its own
	mkdir "$work/inline"
	"$work/mkbig" -kind union -elements 10000 "${@:2}" >"$work/inline/_metadata"
	"$spt" convert -q "$work/inline" "$work/$1" --inline-threshold 1KiB >/dev/null
	rm -r "$work/inline"
	echo "$1: $(du -sh "$work/$1" | cut -f1) in $(find "$work/$1" -type f | wc -l) files"
}
snapshot one -subtasks 1 -elements 300000 -element-size 1000
snapshot many -subtasks 100
clean() { echo "rm -rf $work/buckets/bench/out"; }

printf '%-34s %12s    %12s\n' "" spt rclone
for kind in one many; do
	$rclone copy -q "$work/$kind" "s:bench/$kind"
done
object=one/$(cd "$work/one" && echo 0*)
pair "read one object" "$work/catobject s3://bench/$object >/dev/null" "$rclone cat s:bench/$object >/dev/null"
for kind in one many; do
	pair "copy $kind to S3" "$(clean); $spt convert -q $work/$kind s3://bench/out --to flink >/dev/null" "$(clean); $rclone copy -q $work/$kind s:bench/out"
	pair "copy $kind within S3" "$(clean); $spt convert -q s3://bench/$kind s3://bench/out --to flink >/dev/null" "$(clean); $rclone copy -q s:bench/$kind s:bench/out"
	pair "copy $kind from S3" "rm -rf $work/o; $spt convert -q s3://bench/$kind $work/o --to flink >/dev/null" "rm -rf $work/o; $rclone copy -q s:bench/$kind $work/o"
	pair "decode $kind / cat" "$spt verify -q --read s3://bench/$kind >/dev/null" "$rclone cat s:bench/$kind >/dev/null"
done

small=$(find "$root/testdata/savepoints" -name _metadata -exec ls -S {} + | tail -1)
for i in $(seq 10000); do
	mkdir -p "$work/list/savepoint-$(printf %06x "$i")-000000000000"
	cp "$small" "$work/list/savepoint-$(printf %06x "$i")-000000000000/_metadata"
done
$rclone copy -q --no-check-dest --transfers 16 "$work/list" s:bench/list # by the service: it gives objects their ETags
pair "ls of 10,000 / cat of 10,000" "$spt ls s3://bench/list -o csv >/dev/null" "$rclone cat s:bench/list >/dev/null"
: >"$requests"
if [ -x /usr/bin/time ]; then
	/usr/bin/time -f "peak memory %M KiB: ls of 10,000" "$spt" ls s3://bench/list -o csv 2>&1 >/dev/null | tail -1
else
	"$spt" ls s3://bench/list -o csv >/dev/null
fi
echo "requests of ls of 10,000: $(grep -c ListObjectsV2 "$requests") lists, $(grep -c GetObject "$requests") reads"
