#!/usr/bin/env bash
# S3 against rclone, on one server (versitygw) on this machine: reading and writing a
# large snapshot and many small files, and listing 10,000 snapshots.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tool() { # MODULE PACKAGE NAME
	(cd "$repository/tools/$1" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$work/$3" "$2")
}
tool servers github.com/versity/versitygw/cmd/versitygw versitygw
tool rclone github.com/rclone/rclone rclone

export AWS_ACCESS_KEY_ID=benchkey AWS_SECRET_ACCESS_KEY=benchsecret AWS_REGION=us-east-1 AWS_ENDPOINT_URL_S3=http://127.0.0.1:17170
mkdir -p "$work/buckets/bench"
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY "$work/versitygw" -q --keep-alive --region us-east-1 --health /health \
	--port 127.0.0.1:17170 posix "$work/buckets" >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
until curl -sf http://127.0.0.1:17170/health >/dev/null; do sleep 0.1; done
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

mkdir "$work/union" "$work/copies"
"$work/mkbig" -kind copies >"$work/copies/_metadata"
"$spt" convert -q "$work/copies" "$work/many" --inline-threshold 1KiB >/dev/null # about 100 files
"$work/mkbig" -kind union -size 512 >"$work/union/_metadata"
"$spt" convert -q "$work/union" "$work/large" --inline-threshold 1KiB >/dev/null
du -sh "$work/many" "$work/large"
clean() { echo "rm -rf $work/buckets/bench/out"; }

printf '%-34s %12s    %12s\n' "" spt rclone
for kind in many large; do
	$rclone copy -q "$work/$kind" "s:bench/$kind"
	pair "read $kind: verify --read / cat" "$spt verify -q --read s3://bench/$kind >/dev/null" "$rclone cat s:bench/$kind >/dev/null"
	pair "copy $kind to S3" "$(clean); $spt convert -q $work/$kind s3://bench/out --to flink >/dev/null" "$(clean); $rclone copy -q $work/$kind s:bench/out"
	pair "copy $kind within S3" "$(clean); $spt convert -q s3://bench/$kind s3://bench/out --to flink >/dev/null" "$(clean); $rclone copy -q s:bench/$kind s:bench/out"
	pair "copy $kind from S3" "rm -rf $work/o; $spt convert -q s3://bench/$kind $work/o --to flink >/dev/null" "rm -rf $work/o; $rclone copy -q s:bench/$kind $work/o"
done
small=$(find "$repository/testdata/savepoints" -name _metadata -size -3k | head -1)
for i in $(seq 10000); do
	mkdir -p "$work/buckets/bench/list/savepoint-$(printf %06x "$i")-000000000000"
	cp "$small" "$work/buckets/bench/list/savepoint-$(printf %06x "$i")-000000000000/_metadata"
done
pair "ls 10,000 snapshots / lsf" "$spt ls s3://bench/list -o csv >/dev/null" "$rclone lsf -R s:bench/list >/dev/null"
if [ -x /usr/bin/time ]; then
	/usr/bin/time -f "peak memory %M KiB: ls of 10,000" "$spt" ls s3://bench/list -o csv 2>&1 >/dev/null | tail -1
fi
