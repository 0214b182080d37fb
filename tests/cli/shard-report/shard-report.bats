#!/usr/bin/env bats
# vfm-shard report, and --report of a run: the page about the samples of a dataset.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

# corpus: 60 samples in three shards, with a score q, a number that is always 7, one that a few have, one that is
# text in some, captions full of markup, and vectors of two encoders.
corpus() {
  python3 - <<'EOF' >samples.jsonl
import json, random
r = random.Random(4)
for i in range(60):
    meta = {"source_hash": "src%d" % (i % 9), "width": 320, "height": 180, "seconds": 1 + i % 12, "same": 7,
            "q": ((i * 37) % 60) / 10, "mixed": i if i % 3 else "many", "<b>&\"'": i,
            "video_encoder": {"name": "own", "hash": str(i % 2)}}
    if i < 5: meta["seldom"] = i
    print(json.dumps({"shard": "s%d" % (i % 3), "key": "k%02d" % i, "json": meta,
                      "txt": "caption %d </p><script>alert(1)</script> \"'&" % i,
                      "video": [r.gauss(0, 1) for _ in range(21)]}))
EOF
  make_shards in <samples.jsonl >m.jsonl
}

# read_page PAGE: what it shows, as JSON; fails for markup that is none of the page's own, and for anything that would be
# fetched from elsewhere.
read_page() {
  python3 - "$1" <<'EOF'
import html.parser, json, re, sys
text = re.sub("[\u2068\u2069]", "", open(sys.argv[1], encoding="utf-8").read())  # what sets names apart
page = {"strips": {}, "cards": {}, "charts": [], "same": ""}
OWN = set("""html head meta title style body main h1 h2 h3 p div table thead tbody tr th td figure figcaption svg rect line text
          article span small dl dt dd wbr a""".split())
class Parser(html.parser.HTMLParser):
    strip = card = None
    mode = name = field = ""
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        assert tag in OWN, tag
        assert not {"src", "onload", "onerror"} & set(a), a
        assert re.fullmatch(r"#c\d+", a.get("href", "#c0")), a
        if tag == "article": self.card = page["cards"][a["id"]] = {"near": [], "dl": {}}
        if "aria-label" in a: self.name = a["aria-label"]
        if tag == "dt": self.field = ""
        if tag != "wbr": self.mode = tag
    def handle_endtag(self, tag):
        if tag == "article": self.card = None
        self.mode = ""
    def handle_data(self, data):
        card = self.card
        if card is not None:
            if self.mode == "h3": card.setdefault("key", data)
            if self.mode == "p": card["text"] = data
            if self.mode == "dt": self.field += data
            if self.mode == "dd": card["dl"][self.field] = data
            if self.mode == "span": card["near"].append([self.name, data])
        elif self.mode == "h3": self.strip = page["strips"].setdefault(data, [])
        elif self.mode == "span": self.strip.append([self.name, data])
        elif self.mode == "figcaption": page["charts"].append(data)
        elif self.mode == "p" and data.startswith("Always the same"): page["same"] = data
Parser().feed(text)
assert "http" not in re.sub(r"data:[^\"]*", "", text)
print(json.dumps(page))
EOF
}

@test "--report: least and most of each score, captions as text, the exact nearest of the same encoder" {
  corpus
  vfm-shard --keep-duplicates --report page.html -o d <m.jsonl >/dev/null
  read_page page.html >page.json
  python3 - <<'EOF'
import json, math
page = json.load(open("page.json"))
samples = {s["key"]: s for s in map(json.loads, open("samples.jsonl"))}
by_q = sorted(samples, key=lambda k: samples[k]["json"]["q"])
assert [k for k, _ in page["strips"]["q, the least"]] == by_q[:5], page["strips"]
assert [k for k, _ in page["strips"]["q, the most"]] == by_q[:-6:-1]
assert page["strips"]["q, the most"][0][1] == "5.9"
# Of five samples none is at both ends; facts and what never differs are no scores.
assert [k for k, _ in page["strips"]["seldom, the least"]] == ["k00", "k01", "k02"]
assert [k for k, _ in page["strips"]["seldom, the most"]] == ["k04", "k03"]
assert set(page["strips"]) == {n + e for n in ("q", "seldom", "mixed", "<b>&\"'") for e in (", the least", ", the most")}
assert "same 7" in page["same"] and "width 320" in page["same"]
assert any(c.startswith("seldom: 0 to 4 (5 samples)") for c in page["charts"])
assert any(c.startswith("seconds: 1 to 12") for c in page["charts"])
def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
assert 24 <= len(page["cards"]) < 60
for card in page["cards"].values():
    me = samples[card["key"]]
    assert card["text"] == me["txt"]
    assert card["dl"]["q"] == "%.4g" % me["json"]["q"]
    others = [(-cosine(me["video"], s["video"]), k) for k, s in samples.items()
              if k != card["key"] and s["json"]["video_encoder"] == me["json"]["video_encoder"]]
    want = [(k, -c) for c, k in sorted(others)[:4]]
    assert [k for k, _ in card["near"]] == [k for k, _ in want], (card, want)
    assert all(abs(float(got) - c) < 2e-3 for (_, got), (_, c) in zip(card["near"], want))
EOF
}

# bats test_tags=night
@test "--report: the same page at any -j and for any order of the input; of what stays after a filter; continued" {
  corpus
  vfm-shard -j1 --keep-duplicates --report a.html -o d <m.jsonl >/dev/null
  tac m.jsonl | vfm-shard -j3 --keep-duplicates --report b.html -o e >/dev/null
  same_pages a.html b.html
  vfm-shard --keep-duplicates --report c.html -o d <m.jsonl >/dev/null
  same_pages a.html c.html
  vfm-shard report --where 'q < 3' --balance 'mixed=0.5' --scores q -o f.html <m.jsonl >/dev/null 2>&1
  read_page f.html | jq -e '(.strips | keys == ["q, the least", "q, the most"]) and .strips["q, the most"][0][1] == "2.9"' >/dev/null
}

@test "report: the page that --report of a run writes, and nothing else" {
  corpus
  vfm-shard --keep-duplicates --report a.html -o d <m.jsonl >/dev/null
  mkdir look
  vfm-shard report --keep-duplicates -o look/page.html <m.jsonl >out 2>err
  [ ! -s out ] && [ ! -s err ]
  [ "$(ls -A look)" = page.html ]
  [ "$(read_page look/page.html)" = "$(read_page a.html)" ]
  grep -q '60 samples, .* no dataset was written' look/page.html
  # What cannot be read is told, and the status says so.
  echo nothing >bad.tar
  fails 1 vfm-shard report -o look/page.html m.jsonl bad.tar
  grep -q bad.tar err
  [ "$(ls -A look)" = page.html ]
  # Its folder is made, with a message. The splits that there would be; and no file is named that is not there.
  cat m.jsonl m.jsonl m.jsonl m.jsonl m.jsonl >five.jsonl
  vfm-shard report --split train=0.5,val=0.5 -o new/page.html <five.jsonl 2>err
  grep -q "made the folder 'new' for the report" err
  [ "$(ls -A new)" = page.html ]
  grep -q '<h2>Splits</h2>' new/page.html
  grep -q '>val</td>' new/page.html
  grep -q 'The first 200 of 240\.' new/page.html
  [ "$(grep -c 'duplicates.jsonl' new/page.html)" -eq 0 ]
}

# bats test_tags=night
@test "report: what a run that goes on has beside the page stays" {
  corpus
  mkdir -p .page.html.vfm-shard/.unpacked
  touch .page.html.vfm-shard/.unpacked/its.tar
  exec 9<.page.html.vfm-shard
  flock 9
  fails 1 vfm-shard report -o page.html m.jsonl 9>&-
  grep -q 'in use by another program' err
  [ -e .page.html.vfm-shard/.unpacked/its.tar ]
  exec 9<&-
  vfm-shard report -o page.html m.jsonl
  [ -e page.html ] && [ ! -e .page.html.vfm-shard ]
}

# bats test_tags=night
@test "report: wrong options end with status 2, and the page of a dry run is not written" {
  corpus
  fails 2 vfm-shard report m.jsonl
  grep -q -- '--output is required' err
  for bad in "-o p.html --force" "-o p.html --dry-run" "-o p.html --shard-size 1MB" "-o p.html --report q.html" \
    "-o p.html --scores source_hash"; do
    # shellcheck disable=SC2086
    fails 2 vfm-shard report $bad m.jsonl
  done
  fails 2 vfm-shard report -o p.html --scores seldon m.jsonl
  grep -q "no sample has a number 'seldon'; did you mean: seldom" err
  fails 2 vfm-shard -o d report m.jsonl
  grep -q "the verb 'report' goes first: vfm-shard report" err
  vfm-shard --dry-run --report p.html -o d m.jsonl >/dev/null
  [ ! -e p.html ] && [ ! -e d ]
}
