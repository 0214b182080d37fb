#!/usr/bin/env python3
"""Makes shards with their columns from JSON lines, and prints their manifest records.

Usage: make_shards.py DIR < samples.jsonl
A line: {"shard": "a", "key": "k1", "media": "mp4", "bytes": "contents" or a number of them,
         "json": {...}, "txt": "...", "video": [numbers], "vectors": {"text": [[numbers], ...]}}
DIR/a.tar gets the media and the json; DIR/a.caption.tar the txt and DIR/a.embed.tar the video.npy, and a
NAME.npy for each of its vectors, where a sample has them. Written by Python's tarfile in its default (PAX) format, without indexes.
"""
# SPDX-License-Identifier: Apache-2.0
import io
import json
import os
import random
import struct
import sys
import tarfile


def npy(values):
    shape = "(%d,)" % len(values)
    if isinstance(values[0], list):
        shape = "(%d, %d)" % (len(values), len(values[0]))
        values = sum(values, [])
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(
        "<%df" % len(values), *values)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    tars = {}

    def add(path, name, data):
        if path not in tars:
            tars[path] = tarfile.open(path, "w")
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tars[path].addfile(info, io.BytesIO(data))

    columns = {}
    for line in sys.stdin:
        sample = json.loads(line)
        stem = os.path.join(folder, sample["shard"])
        mine = columns.setdefault(sample["shard"], {"clip": stem + ".tar"})
        contents = sample.get("bytes", sample["key"])
        if isinstance(contents, int):
            contents = random.Random(sample["key"]).randbytes(contents)
        else:
            contents = contents.encode()
        add(stem + ".tar", sample["key"] + "." + sample.get("media", "mp4"), contents)
        if "json" in sample:
            add(stem + ".tar", sample["key"] + ".json", json.dumps(sample["json"]).encode())
        if "txt" in sample:
            mine["caption"] = stem + ".caption.tar"
            add(mine["caption"], sample["key"] + ".txt", sample["txt"].encode())
        if "video" in sample:
            mine["embed"] = stem + ".embed.tar"
            add(mine["embed"], sample["key"] + ".video.npy", npy(sample["video"]))
        for name, values in sample.get("vectors", {}).items():
            mine["embed"] = stem + ".embed.tar"
            add(mine["embed"], sample["key"] + "." + name + ".npy", npy(values))
    for tar in tars.values():
        tar.close()
    for name, mine in columns.items():
        print(json.dumps({"kind": "shard", "path": mine["clip"], "columns": mine}))


main()
