# Shards made by hand (tests/data/make_shards.py), and what is in those that vfm-shard made of them.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# corpus [BYTES]: 60 samples of 9 sources in three shards with captions and embeddings; manifest m.jsonl.
corpus() {
  python3 - "${1:-0}" <<'EOF' >samples.jsonl
import json, random, sys
r = random.Random(1)
for i in range(60):
    print(json.dumps({
        "shard": "s%d" % (i % 3), "key": "k%02d" % i, "bytes": int(sys.argv[1]) or 2000 + i,
        "json": {"source_hash": "src%d" % (i % 9), "width": 1280 if i % 2 else 640,
                 "height": 720 if i % 2 else 640, "seconds": 1 + i % 12, "motion": i / 1000,
                 "fps": 30, "frames": 30 * (1 + i % 12)},
        "txt": "caption %d" % i, "video": [r.gauss(0, 1) for _ in range(32)]}))
EOF
  make_shards in <samples.jsonl >m.jsonl
}

# members DIR NAME: the contents of all members NAME (a glob) of all shards below DIR, one a line.
members() {
  find "$1" -name '*.tar' | LC_ALL=C sort | while read -r tar; do
    tar xf "$tar" --to-command='cat; echo' --wildcards "$2"
  done
}
keys() { members "$1" '*.json' | jq -r .key | sort; }

# splits DIR: each source with its split.
splits() { members "$1" '*.json' | jq -r '[.source, .split] | join(" ")' | sort -u; }

# tar_of FILE NAME=TEXT...: a tar with these members, as Python writes it.
tar_of() {
  python3 - "$@" <<'EOF'
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w:gz" if sys.argv[1].endswith("gz") else "w") as tar:
    for word in sys.argv[2:]:
        name, text = word.split("=", 1)
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
EOF
}
