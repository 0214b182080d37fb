#!/usr/bin/env bats
# Buckets: credentials and their sources, what is refused and how soon, and that no secret is written anywhere.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
bats_require_minimum_version 1.5.0

setup_file() {
  load ../helpers
  load storage
  setup_tools
  cd "$BATS_FILE_TMPDIR" || return 1
  bucket_start || return 1
  [ -z "${NO_BUCKET-}" ] || return 0
  make_video a.mp4 1.5
  echo 'a recipe' >words.txt
  bucket media
  bucket_objects put a.mp4 media/a.mp4
  bucket_objects put a.mp4 'media/a b+c=ü.mp4'
  vfm-clip --min-length 1s -o wanted s3://media/a.mp4 >/dev/null
  cp wanted/*-00000.tar a.tar
  bucket_objects put a.tar media/a.tar
}
teardown_file() { load storage && bucket_stop; }
setup() {
  load ../helpers
  load storage
  setup_tools
  needs_bucket
  export VFM_NET_SECONDS=2
}

# shots ADDRESS...: a command that reads objects, and writes none.
shots() { timeout 30 vfm-clip shots "$@" </dev/null; }
# fails_with STATUS TEXT COMMAND...: within ten seconds; TEXT is on standard error, and each word after the first line too.
fails_with() {
  local want=$1 text=$2 begin=$SECONDS
  run --separate-stderr timeout 30 "${@:3}" </dev/null
  echo "${*:3}: $status $stderr"
  [ "$status" -eq "$want" ] && [[ $stderr == *"$text"* ]] && [ $((SECONDS - begin)) -le 10 ]
}

@test "wrong and missing credentials, buckets and keys: told with what to do, before any work and within seconds" {
  local none=(env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY "HOME=$PWD")
  fails_with 1 "cannot open 's3://media/none.mp4'" vfm-clip shots s3://media/none.mp4
  fails_with 1 "s3://nowhere/a.mp4" vfm-clip shots s3://nowhere/a.mp4
  [[ $stderr == *[Bb]ucket* ]]
  fails_with 1 "403 SignatureDoesNotMatch" env AWS_SECRET_ACCESS_KEY=wrong vfm-clip shots s3://media/a.mp4
  [[ $stderr == *"'s3://media/a.mp4'"* && $stderr == *"credentials"* ]]
  fails_with 1 "403 InvalidAccessKeyId" env AWS_ACCESS_KEY_ID=nobody vfm-clip shots s3://media/a.mp4
  fails_with 1 "AWS_ACCESS_KEY_ID" "${none[@]}" vfm-clip shots s3://media/a.mp4
  fails_with 1 "403" "${none[@]}" VFM_S3_ANONYMOUS=1 vfm-clip shots s3://media/a.mp4
  # Outputs: nothing was done.
  fails_with 1 "s3://nowhere/out" vfm-clip -o s3://nowhere/out s3://media/a.mp4
  fails_with 1 "SignatureDoesNotMatch" env AWS_SECRET_ACCESS_KEY=wrong vfm-clip -o s3://media/refused "$BATS_FILE_TMPDIR/a.mp4"
  fails_with 2 "nothing can be written" vfm-clip -o http://127.0.0.1:9/out s3://media/a.mp4
  fails_with 2 "s3://" vfm-clip -o gs://media/out s3://media/a.mp4
  fails_with 2 "s3:///a.mp4" vfm-embed s3:///a.mp4
  [ -z "$(bucket_objects list media/refused)" ]
  # An endpoint where nobody answers, and one that never does.
  fails_with 1 "127.0.0.1 port 9" env AWS_ENDPOINT_URL=http://127.0.0.1:9 vfm-clip shots s3://media/a.mp4
  fails_with 1 "no-such-host.invalid" env AWS_ENDPOINT_URL=http://no-such-host.invalid vfm-clip shots s3://media/a.mp4
  proxy_start
  faults <<<'silent'
  fails_with 1 's3://media/a.mp4' vfm-clip shots s3://media/a.mp4
}

@test "what a server says for ever ends a run in the time of VFM_NET_SECONDS, with its code" {
  proxy_start
  local code status
  while read -r status code; do
    faults <<<"error status=$status code=$code"
    # An answer to HEAD tells no code, and a request that is not refused for good is not sent in another way.
    [ "$status" -lt 500 ] || code=
    fails_with 1 "$status${code:+ $code}" vfm-clip shots s3://media/a.mp4
    [ "$(injected)" -ge 1 ]
    [ "$(injected)" -lt 50 ]
  done <<'END'
503 SlowDown
403 ExpiredToken
403 RequestTimeTooSkewed
403 AccessDenied
END
  faults <<<'error status=503 code=SlowDown'
  fails_with 1 "'s3://media/a.mp4', try 1: status 503" vfm-clip shots -v s3://media/a.mp4
  faults <<<'error status=403 code=AccessDenied'
  fails_with 1 AccessDenied vfm-clip shots s3://media/a.mp4
  [ "$(injected)" -le 2 ] # it is not tried again
}

@test "a machine whose clock is an hour behind signs with the time of the server" {
  cc -shared -fPIC -o wrong-clock.so "$BATS_TEST_DIRNAME/wrong-clock.c"
  shots s3://media/a.mp4 | records >wanted
  LD_PRELOAD="$PWD/wrong-clock.so" shots s3://media/a.mp4 2>err | records >got
  cat err
  diff wanted got
  grep -q 'clock' err
}

@test "credentials: a profile of a file, a container's server with renewal, and a session's token" {
  shots s3://media/a.mp4 | records >wanted
  [ "$(wc -l <wanted)" -ge 1 ]
  mkdir home
  printf '[default]\naws_access_key_id = nobody\naws_secret_access_key = nothing\n\n[here]\naws_access_key_id = %s\naws_secret_access_key=%s\n' \
    "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >home/credentials
  printf '[profile here]\nregion = us-east-1\nendpoint_url = %s\n' "$AWS_ENDPOINT_URL" >home/config
  local endpoint=$AWS_ENDPOINT_URL
  unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_ENDPOINT_URL
  export AWS_SHARED_CREDENTIALS_FILE=$PWD/home/credentials AWS_CONFIG_FILE=$PWD/home/config
  diff wanted <(AWS_PROFILE=here shots s3://media/a.mp4 | records)
  export AWS_ENDPOINT_URL=$endpoint
  fails_with 1 403 vfm-clip shots s3://media/a.mp4
  AWS_PROFILE=nobody fails_with 1 "'nobody'" vfm-clip shots s3://media/a.mp4
  # A server of credentials that gives each for a short time.
  unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  export AWS_SHARED_CREDENTIALS_FILE=/nonexistent AWS_CONFIG_FILE=/nonexistent
  KEY=$bucket_key SECRET=$bucket_secret python3 - >>given 2>server.err <<'PY' 3>&- &
import datetime, http.server, json, os
class Give(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.path == "/keys" and self.headers.get("Authorization") == "Bearer of-a-container"
        ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        body = json.dumps({"AccessKeyId": os.environ["KEY"], "SecretAccessKey": os.environ["SECRET"],
                           "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode() if good else b"{}"
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print("given" if good else "refused", flush=True)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Give)
with open("port.new", "w") as file: file.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
  local giver=$!
  await test -s port
  export AWS_CONTAINER_CREDENTIALS_FULL_URI="http://127.0.0.1:$(<port)/keys" AWS_CONTAINER_AUTHORIZATION_TOKEN='Bearer of-a-container'
  diff wanted <(shots s3://media/a.mp4 | records)
  [ "$(xargs <given)" = given ]
  # The server says that they are over: others are asked for.
  proxy_start
  faults <<<'error status=403 code=ExpiredToken nth=2'
  diff wanted <(shots s3://media/a.mp4 | records)
  [ "$(injected)" -eq 1 ]
  [ "$(xargs <given)" = 'given given given' ]
  kill $giver
}

@test "names with spaces, signs and umlauts; several slashes; a key that is also a folder" {
  diff <(shots s3://media/a.mp4 | records | jq -c .cuts) <(shots 's3://media/a b+c=ü.mp4' | records | jq -c .cuts)
  vfm-clip --min-length 1s -o 's3://media/out of ü+/x=1' s3://media/a.mp4 >m.jsonl
  vfm-embed <m.jsonl >e.jsonl
  bucket_objects get 'media/out of ü+/x=1' got
  cmp got/*-00000.tar "$BATS_FILE_TMPDIR"/wanted/*-00000.tar
  [ "$(find got -name '*.embed.tar' | wc -l)" -eq 1 ]
}

@test "http: videos and shards are read from a server, with ranges and without, and nothing is written" {
  # The filer of SeaweedFS answers to ranges, Python's server does not.
  (cd "$BATS_FILE_TMPDIR" && exec python3 -u -m http.server -b 127.0.0.1 0 >"$BATS_TEST_TMPDIR/said" 2>/dev/null 3>&-) &
  local plain=$! place
  await grep -q 'port [0-9]' said
  vfm-embed -o wanted "$BATS_FILE_TMPDIR/a.tar" >/dev/null
  for place in "$BUCKET_FILES/media" "http://127.0.0.1:$(sed -E 's/.* port ([0-9]+).*/\1/' said)"; do
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY vfm-clip --min-length 1s -o clips "$place/a.mp4" >/dev/null
    cmp <(tar -xOf clips/*-00000.tar --wildcards '*.mp4') <(tar -xOf "$BATS_FILE_TMPDIR/a.tar" --wildcards '*.mp4')
    rm -r clips
    refused "'$place/out'" vfm-embed -o "$place/out" "$BATS_FILE_TMPDIR/a.tar"
    run --separate-stderr timeout 30 vfm-clip shots "$place/none.mp4"
    [ "$status" -eq 1 ] && [[ $stderr == *"'$place/none.mp4'"* ]]
  done
  vfm-embed -o embedded "$BUCKET_FILES/media/a.tar" >/dev/null
  cmp wanted/a.embed.tar embedded/a.embed.tar
  # A shard is read in pieces.
  run --separate-stderr vfm-embed -o embedded "$place/a.tar"
  [ "$status" -eq 1 ] && [[ $stderr == *"'$place/a.tar'"*"ranges; copy it to a disk"* ]]
  kill $plain
}

@test "msc: a profile of MSC's configuration names the bucket; its manifest spares the listing" {
  cat >msc.yaml <<END
profiles:
  here:
    storage_provider:
      type: s3
      options: {base_path: media/msc, region_name: us-east-1, endpoint_url: "$AWS_ENDPOINT_URL"}
    credentials_provider:
      type: S3Credentials
      options: {access_key: "\${AWS_ACCESS_KEY_ID}", secret_key: "\${AWS_SECRET_ACCESS_KEY}"}
  elsewhere:
    storage_provider: {type: azure, options: {base_path: container}}
END
  export MSC_CONFIG=$PWD/msc.yaml
  vfm-clip --min-length 1s -o msc://here/clips s3://media/a.mp4 >/dev/null
  bucket_objects get media/msc/clips got
  cmp got/*-00000.tar "$BATS_FILE_TMPDIR"/wanted/*-00000.tar
  refused "'elsewhere'" vfm-clip -o msc://elsewhere/x s3://media/a.mp4
  refused "'nobody'" vfm-clip -o msc://nobody/x s3://media/a.mp4
}

@test "no secret is in what is printed or written, in reports, in a cache, or in the list of processes" {
  export AWS_SESSION_TOKEN='' VFM_CACHE=$PWD/cache:1GB HOME=$PWD TMPDIR=$PWD/tmp
  unset AWS_SESSION_TOKEN
  local token=AlsoNobodyMayPrintThis0123456789 query=InAnAddressButUnseen0123 identity=OfTheWebAndUnseen0123 watch address
  mkdir tmp
  (while sleep 0.02; do ps -eo args >>processes; done 3>&-) &
  watch=$!
  proxy_start
  faults <<'END'
error status=503 code=SlowDown retry_after=0 nth=2
reset nth=4
END
  {
    vfm-clip -vv --isolate --min-length 1s -o s3://media/secret/clips --report s3://media/secret/clips.html s3://media/a.mp4 |
      vfm-caption -vv | vfm-embed -vv | vfm-shard -vv -o s3://media/secret/dataset | vfm-pack -vv --size 64 --frames 17 -o s3://media/secret/latents
    vfm-clip list -o s3://media/secret/parts -n 1 <<<s3://media/a.mp4
    vfm-clip -vv -o s3://media/secret/parts --part 0/1
    VFM_NET_SECONDS=1 vfm-embed -vv s3://nowhere/a.tar
    vfm-embed -vv s3://media/none.tar
    AWS_ACCESS_KEY_ID=nobody vfm-clip -vv shots s3://media/a.mp4
  } >said 2>&1 || true
  # Servers of AWS tell what they signed, with the token, when a signature is wrong.
  export AWS_SESSION_TOKEN=$token
  faults <<<'error status=403 code=SignatureDoesNotMatch'
  vfm-clip -vv shots s3://media/a.mp4 >>said 2>&1 || true
  vfm-train s3://media/none.yaml --data s3://media/none -o s3://media/secret/run >>said 2>&1 || true
  [ "$(injected)" -ge 2 ]
  unset AWS_SESSION_TOKEN
  # A server of web identities that repeats what it was sent, and one that gives keys for it.
  KEY=$bucket_key SECRET=$bucket_secret python3 - 2>server.err <<'PY' 3>&- &
import http.server, os
class Give(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        sent, good = self.rfile.read(int(self.headers["Content-Length"])).decode(), self.path == "/good/"
        body = ("<R><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}"
                "</SecretAccessKey></Credentials></AssumeRoleWithWebIdentityResult></R>".format(**os.environ) if good else
                "<R><Error><Code>InvalidIdentityToken</Code><Message>" + sent.replace("&", " ") + "</Message></Error></R>").encode()
        self.send_response(200 if good else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Give)
with open("port.new", "w") as file: file.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
  local giver=$!
  await test -s port
  echo "$identity" >token
  no_faults
  for address in good wrong; do
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_WEB_IDENTITY_TOKEN_FILE="$PWD/token" AWS_ROLE_ARN=arn:aws:iam::1:role/r \
      AWS_ENDPOINT_URL_STS="http://127.0.0.1:$(<port)/$address" vfm-clip -vv --min-length 1s -o "s3://media/secret/$address" s3://media/a.mp4
  done >>said 2>&1 || true
  kill $giver
  [ -n "$(bucket_objects list media/secret/good)" ]
  grep -q InvalidIdentityToken said
  # What such addresses have is refused, and shown nowhere.
  for address in "https://127.0.0.1:9/a.mp4?X-Amz-Signature=$query" "https://user:$query@127.0.0.1:9/a.mp4" "s3://user:$query@media/a.mp4"; do
    vfm-clip -vv -o s3://media/secret/refused <<<"$address" || true
    vfm-clip list -n 1 -o s3://media/secret/list <<<"$address" && vfm-clip -vv -o s3://media/secret/list --part 0/1 || true
    vfm-embed -vv -o s3://media/secret/refused <<<"{\"kind\":\"shard\",\"path\":\"$address\",\"samples\":1}" || true
    vfm-clip -vv -o "$address" s3://media/a.mp4 || true
    vfm-clip -vv --report "$address" -o clips s3://media/a.mp4 || true
    vfm-train -vv s3://media/none.yaml --data "$address" -o "$address" || true
    vfm-generate -vv --model "$address" -o "$address" 'a red circle' || true
  done >>said 2>&1
  kill $watch
  grep -q 'vfm-clip' processes
  grep -q SignatureDoesNotMatch said
  bucket_objects get media/secret got
  [ "$(find got -type f | wc -l)" -gt 8 ]
  cp "$PROXY/requests.jsonl" requests
  local secret
  # Also as an address or a form would write it, and its parts.
  for secret in NobodyMayPrintThis "$token" "$identity" "$query"; do
    # The addresses were given as arguments.
    [ "$secret" != "$query" ] || : >processes
    run grep -rlaF -e "$secret" said processes got cache tmp "$VFM_STATE" "$BATS_FILE_TMPDIR/state"
    echo "$secret: $output"
    grep -haF -m 5 -e "$secret" said || true
    [ "$status" -eq 1 ] || [ -z "$output" ]
  done
  run grep -cF "$bucket_secret" requests
  [ "$output" = 0 ]
}
