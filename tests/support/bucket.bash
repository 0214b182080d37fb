# An object store for tests: SeaweedFS, from PyPI, which checks signatures, conditions and checksums; boto3 to look at it from
# outside; and a proxy before it that injects faults. scripts/install-deps installs them.
#
#   setup_file() { ... bucket_start; }     a server of this file of tests; without it $NO_BUCKET says why
#   setup() { needs_bucket; ... }          skips the test then
#   teardown_file() { bucket_stop; }
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

bucket_python=${XDG_CACHE_HOME:-${HOME:-}/.cache}/vfm/storage

# What a test looks for in all that is written. The slash, the plus and the equals sign are written in other ways in an address.
bucket_key=VFMTESTKEY0123456789
bucket_secret=NobodyMayPrintThis/0123456789+abc=

# Environments of AWS's programs would be taken for the test's.
forget_clouds() {
  local name
  for name in $(compgen -e AWS_) $(compgen -e MSC_) VFM_CACHE VFM_STATE VFM_S3_ANONYMOUS; do unset "$name"; done
  unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
  # What a user has in ~/.aws is none of the tests' business.
  export AWS_SHARED_CREDENTIALS_FILE=/nonexistent AWS_CONFIG_FILE=/nonexistent AWS_EC2_METADATA_DISABLED=true
}

# free_ports COUNT: so many numbers in one line. Each port, and the one 10000 above it, is free, and no program that connects
# to another gets it from the system.
free_ports() {
  "$bucket_python/bin/python" - "$1" <<'PY'
import random, socket, sys
found = []
while len(found) < int(sys.argv[1]):
    port = random.randrange(11000, 22000)
    try:
        for one in (port, port + 10000):
            with socket.socket() as test:
                test.bind(("127.0.0.1", one))
    except OSError:
        continue
    if port not in found:
        found.append(port)
print(*found)
PY
}

# bucket_start: a server. Where it cannot be had, $NO_BUCKET says why, and the status is 0.
bucket_start() {
  local try ports server folder=$BATS_FILE_TMPDIR/server
  forget_clouds
  if ! cmp -s "$bucket_python/installed" "$VFM_ROOT/tests/support/bucket-requirements.txt"; then
    export NO_BUCKET="no SeaweedFS in '$bucket_python' (scripts/install-deps installs it)"
    return 0
  fi
  export AWS_ACCESS_KEY_ID=$bucket_key AWS_SECRET_ACCESS_KEY=$bucket_secret AWS_REGION=us-east-1
  export VFM_STATE=$BATS_FILE_TMPDIR/state VFM_NET_SECONDS=100
  for try in 1 2 3; do
    rm -rf "$folder"
    mkdir -p "$folder/data"
    read -r -a ports <<<"$(free_ports 5)"
    # Its default is to tell its makers that it runs.
    (cd "$folder" && exec "$bucket_python/bin/weed" -logtostderr=true mini -dir=data -ip=127.0.0.1 \
      -ip.bind=127.0.0.1 -master.port="${ports[0]}" -volume.port="${ports[1]}" -filer.port="${ports[2]}" \
      -s3.port="${ports[3]}" -admin.port="${ports[4]}" -admin.ui=false -webdav=false -s3.port.iceberg=0 -s3.port.lance=0 \
      -s3.autoCreateBucket=false -master.telemetry=false >log 2>&1 </dev/null 3>&-) &
    server=$!
    export BUCKET_FILES=http://127.0.0.1:${ports[2]}/buckets BUCKET_PORT=${ports[3]}
    export AWS_ENDPOINT_URL=http://127.0.0.1:$BUCKET_PORT
    "$bucket_python/bin/python" "$VFM_ROOT/tests/support/bucket-objects" "$folder" >"$folder/objects.log" 2>&1 </dev/null 3>&- &
    echo "$server $!" >"$folder/pids"
    echo "${ports[@]}" >"$folder/ports"
    # shellcheck disable=SC2046 # two numbers
    until [ -s "$folder/port" ] || ! kill -0 $(<"$folder/pids") 2>/dev/null; do sleep 0.02; done
    if [ -s "$folder/port" ]; then return 0; fi
    echo "try $try: no server" && tail -n 20 "$folder/log" "$folder/objects.log"
    bucket_stop
  done
  return 1
}

# bucket_stop: ends the server, its helper and the proxies. A number of one that has ended may be another program's by now.
bucket_stop() {
  local number
  for number in $(cat "$BATS_FILE_TMPDIR"/server/pids "$BATS_FILE_TMPDIR"/proxy*/pids 2>/dev/null); do
    if grep -qszxF "BATS_FILE_TMPDIR=$BATS_FILE_TMPDIR" "/proc/$number/environ"; then kill -KILL "$number" || true; fi
  done
  # SeaweedFS has sockets in /tmp, whatever TMPDIR says.
  for number in $(cat "$BATS_FILE_TMPDIR/server/ports" 2>/dev/null); do
    rm -f /tmp/seaweedfs-*-{"$number","$((number + 10000))"}.sock
  done
}

# needs_bucket: skips the test where there is no server.
needs_bucket() { [ -z "${NO_BUCKET-}" ] || skip "$NO_BUCKET"; }

# bucket_objects VERB...: tests/support/bucket-objects tells the verbs. It asks the server, past the proxy.
bucket_objects() {
  local line
  exec 8<>"/dev/tcp/127.0.0.1/$(<"$BATS_FILE_TMPDIR/server/port")" || return 1
  printf '%s\037' "$PWD" "$@" >&8
  echo >&8
  while IFS= read -r line <&8; do
    case $line in
      =*) echo "${line#=}" ;;
      *) break ;;
    esac
  done
  exec 8>&-
  [ "$line" = 'status 0' ]
}

# bucket NAME: makes a bucket.
bucket() { bucket_objects make "$1"; }

# proxy_start [SEED]: a proxy before the server, of this file of tests, or of this test if SEED is given. Programs use it by
# $AWS_ENDPOINT_URL then, and $PROXY is its folder.
proxy_start() {
  PROXY=$(mktemp -d "$BATS_FILE_TMPDIR/proxy.XXXXXX")
  export PROXY
  python3 "$VFM_ROOT/tests/support/bucket-proxy.py" "$BUCKET_PORT" "$PROXY" "${1-1}" >"$PROXY/log" 2>&1 </dev/null 3>&- &
  echo $! >"$PROXY/pids"
  await test -s "$PROXY/port" || return 1
  AWS_ENDPOINT_URL=http://127.0.0.1:$(<"$PROXY/port")
  export AWS_ENDPOINT_URL
}

# faults <RULES: the proxy's from now on (bucket-proxy.py tells how rules are written), and its log begins again.
faults() {
  cat >"$PROXY/faults.new"
  mv "$PROXY/faults.new" "$PROXY/faults"
  : >"$PROXY/requests.jsonl"
}
no_faults() { faults </dev/null; }

# asked FILTER: of the proxy's requests what jq finds, as a list; as in: asked 'map(select(.method == "GET")) | length'.
asked() { jq -s "$1" "$PROXY/requests.jsonl"; }
# injected: how many faults there were.
injected() { asked 'map(select(.fault != "")) | length'; }
