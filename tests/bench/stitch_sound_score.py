#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins right and wrong, by look alone and with sound, as Markdown, for tests/bench/stitch_sound.sh.

  stitch_sound_score.py DIR

DIR has videos/truth.json, and the folders off and on of vfm-clip. What counts is whether a video of two shots came
out as one clip. Videos in which no change of shot was found where there is one are left out: nothing is asked of
stitching there. `sound` is the median of what was measured.
"""
import glob
import json
import os
import statistics
import sys

ROOT = sys.argv[1]


def of_runs(name):
    """By file: the changes that were found, and the number of clips."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, name, "*.json")):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        if record.get("kind", "clips") != "clips" or "cuts" not in record:
            continue
        found[os.path.basename(record["source"])] = record
    return found


def main():
    with open(os.path.join(ROOT, "videos", "truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    runs = {name: of_runs(name) for name in ("off", "on")}
    classes = list(dict.fromkeys(one["class"] for one in truth))
    sums = {True: [0, 0, 0], False: [0, 0, 0]}
    print("| sound and pictures | join | videos | right without sound | right with sound | sound |")
    print("|---|---|---:|---:|---:|---:|")
    for name in classes:
        right, count, sounds = {"off": 0, "on": 0}, 0, []
        for one in truth:
            if one["class"] != name:
                continue
            records = {run: runs[run][one["file"]] for run in runs}
            near = [c for c in records["on"]["cuts"] if one["begin"] - 2 <= c["frame"] <= one["end"] + 1]
            if len(near) != 1 or len(records["on"]["cuts"]) != 1:
                continue
            count += 1
            if near[0].get("sound") is not None:
                sounds.append(near[0]["sound"])
            for run, record in records.items():
                joined = record["clips"] == 1
                right[run] += joined == one["join"]
            join = one["join"]
        if count == 0:
            continue
        for place, value in enumerate((count, right["off"], right["on"])):
            sums[join][place] += value
        middle = f"{statistics.median(sounds):.2f} ({len(sounds)})" if sounds else ""
        print(f"| {name} | {'yes' if join else 'no'} | {count} | {right['off']} | {right['on']} | {middle} |")
    for join, (count, off, on) in sums.items():
        print(f"| all that should {'' if join else 'not '}be joined | | {count} | {off} | {on} | |")
    total = [a + b for a, b in zip(sums[True], sums[False])]
    print(f"| all | | {total[0]} | **{total[1]}** | **{total[2]}** | |")


if __name__ == "__main__":
    main()
