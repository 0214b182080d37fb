#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares changes of shot with the truth of shots_make.py.

  shots_score.py DIR NAME=RESULTS.jsonl...

RESULTS holds what vfm-clip shots prints, or shots_scenedetect.py. A found change is one frame. It
is right at tolerance T if it lies within T frames of a cut's first frame, or of the frames that a gradual
change takes; each change of the truth has one finding at most, and the nearest pairs are taken first.
Prints Markdown: a table of all classes at tolerance 0 (F1, or false changes where there is nothing to be
found), then precision, recall and F1 at 0, 1 and 2 frames, of all, of cuts and of gradual changes.
"""
import collections
import json
import os
import sys


def away(change, frame):
    """Frames between what was found and the nearest frame that would be right."""
    last = change["end"] - 1 if change["kind"] == "cut" else change["end"]
    return max(change["begin"] - frame, frame - last, 0)


def match(changes, found, tolerance):
    """Which changes were found, and which findings are left over."""
    pairs = sorted((away(c, f), i, k) for i, c in enumerate(changes) for k, f in enumerate(found)
                   if away(c, f) <= tolerance)
    changes_left, found_left = set(range(len(changes))), set(range(len(found)))
    for _, i, k in pairs:
        if i in changes_left and k in found_left:
            changes_left.remove(i)
            found_left.remove(k)
    # A second finding within the frames of a gradual change is not a second error.
    found_left = {k for k in found_left
                  if not any(c["kind"] != "cut" and away(c, found[k]) <= tolerance for c in changes)}
    return set(range(len(changes))) - changes_left, found_left


def rates(right, missed, false):
    precision = right / (right + false) if right + false else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def count(videos, found, tolerance):
    """For each class: [right, missed, false], and the same of cuts and of gradual changes alone."""
    table = collections.defaultdict(lambda: [0, 0, 0])
    for video in videos:
        changes, frames = video["changes"], found[video["file"]]
        matched, left = match(changes, frames, tolerance)
        kinds = {"cut" if c["kind"] == "cut" else "gradual" for c in changes}
        for i, change in enumerate(changes):
            kind = "cut" if change["kind"] == "cut" else "gradual"
            for row in (video["class"], "all", kind):
                table[row][0 if i in matched else 1] += 1
        for k in left:  # a false one counts against the kind whose truth is nearest
            nearest = min(changes, key=lambda c: away(c, frames[k]), default=None)
            rows = [video["class"]] + (["all"] if kinds else [])
            if nearest:
                rows.append("cut" if nearest["kind"] == "cut" else "gradual")
            for row in rows:
                table[row][2] += 1
    return table


def read_found(path):
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record.get("kind") == "shots":
                name = os.path.basename(record["path"]).removesuffix(".sp")
                found[name] = [cut["frame"] for cut in record["cuts"]]
    return found


def main():
    folder, *named = sys.argv[1:]
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
        videos = json.load(file)
    names = [n.split("=", 1)[0] for n in named]
    results = [read_found(n.split("=", 1)[1]) for n in named]
    tables = [{t: count(videos, found, t) for t in (0, 1, 2)} for found in results]
    classes = list(dict.fromkeys(v["class"] for v in videos))
    positive = [c for c in classes if any(v["changes"] for v in videos if v["class"] == c)]

    print("| F1 at 0 frames, class | changes |", " | ".join(names), "|")
    print("|---|---:|" + "---:|" * len(names))
    for name in positive:
        changes = sum(len(v["changes"]) for v in videos if v["class"] == name)
        print(f"| {name} | {changes} |",
              " | ".join(f"{rates(*t[0][name])[2]:.3f}" for t in tables), "|")
    mean = [sum(rates(*t[0][c])[2] for c in positive) / max(len(positive), 1) for t in tables]
    print("| mean of classes | |", " | ".join(f"**{m:.3f}**" for m in mean), "|\n")

    print("| false changes, class | events |", " | ".join(names), "|")
    print("|---|---:|" + "---:|" * len(names))
    total = [0] * len(names)
    for name in (c for c in classes if c not in positive):
        events = sum(v["events"] for v in videos if v["class"] == name)
        wrong = [t[0][name][2] for t in tables]
        total = [a + b for a, b in zip(total, wrong)]
        print(f"| {name} | {events} |", " | ".join(map(str, wrong)), "|")
    events = sum(v["events"] for v in videos if v["class"] not in positive)
    print(f"| all | {events} |", " | ".join(f"**{n}**" for n in total), "|\n")

    print("| precision, recall, F1 | frames |", " | ".join(names), "|")
    print("|---|---:|" + "---:|" * len(names))
    for row, label in (("all", "all"), ("cut", "cuts"), ("gradual", "gradual")):
        for tolerance in (0, 1, 2):
            print(f"| {label} | {tolerance} |",
                  " | ".join("{:.3f} {:.3f} **{:.3f}**".format(*rates(*t[tolerance][row]))
                             for t in tables), "|")


if __name__ == "__main__":
    main()
