#!/usr/bin/env python3
"""Reads a dataset of vfm-shard as other programs do, and checks that all of them see the same.

Usage: read_shards.py DIR    (with webdataset, braceexpand and PyYAML installed)
Tars by Python's tarfile and by webdataset; the indexes .tar.idx and .idx; wids.json; Energon's .nv-meta, as
strictly as its parsers: unknown keys are errors, tables have exactly its columns. Prints a line for each.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import glob
import json
import os
import re
import sqlite3
import struct
import sys
import tarfile
import uuid

import braceexpand
import webdataset
import yaml

TABLES = {
    "samples": "CREATE TABLE samples (tar_file_id INTEGER NOT NULL, sample_key TEXT NOT NULL UNIQUE, "
               "sample_index INTEGER NOT NULL, byte_offset INTEGER, byte_size INTEGER)",
    "sample_parts": "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT, "
                    "content_byte_offset INTEGER, content_byte_size INTEGER)",
    "media_metadata": "CREATE TABLE media_metadata (entry_key TEXT PRIMARY KEY, metadata_type TEXT NOT NULL, "
                      "metadata_json TEXT NOT NULL)",
    "media_filters": "CREATE TABLE media_filters (filter_id INTEGER PRIMARY KEY AUTOINCREMENT, "
                     "strategy TEXT NOT NULL, patterns TEXT, created_at_utc TEXT DEFAULT CURRENT_TIMESTAMP, "
                     "UNIQUE(strategy, patterns))",
}
INDEXES = {"idx_samples_by_tar_and_idx", "idx_sample_parts_seq", "idx_sample_parts_full"}
AV = {"video_duration", "video_num_frames", "video_fps", "video_width", "video_height"}


def read_tar(path):
    """[(key, [(extension, bytes, header offset, data offset)])] of a tar that must be plain ustar."""
    samples = []
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            assert member.type == tarfile.REGTYPE and not member.pax_headers, member
            assert (member.mode, member.uid, member.gid, member.mtime) == (0o644, 0, 0, 0), member
            assert len(member.name) <= 100 and member.size < 2**31, member
            key, ext = re.fullmatch(r"([A-Za-z0-9_-]+)\.([a-z0-9_.-]+)", member.name).groups()
            if not samples or samples[-1][0] != key:
                samples.append((key, []))
            samples[-1][1].append((ext, tar.extractfile(member).read(), member.offset, member.offset_data))
    with open(path, "rb") as file:
        data = file.read()
    for _, members in samples:
        for _, _, offset, _ in members:
            assert data[offset + 257:offset + 265] == b"ustar\x0000"
    assert data[-1024:] == bytes(1024)
    assert len({tuple(m[0] for m in members) for _, members in samples}) == 1, "members differ"
    return samples, len(data)


def check_indexes(path, samples, size):
    with open(path + ".idx", "rb") as file:
        offsets = struct.unpack("<%dQ" % (len(samples) + 1), file.read())
    assert list(offsets) == [members[0][2] for _, members in samples] + [size - 1024]
    with open(path[:-len(".tar")] + ".idx") as file:
        lines = file.read().splitlines()
    assert lines[0] == "v1.2 %d" % len(samples)
    for line, (key, members) in zip(lines[1:], samples, strict=True):
        want = []
        for ext, data, _, at in members:
            want += [ext, str(at), str(len(data)), key + "." + ext]
        assert line.split(" ") == want


def check_webdataset(paths, contents):
    urls = [os.path.abspath(p) for p in paths]
    raw = {s["__key__"]: s for s in webdataset.WebDataset(urls, shardshuffle=False)}
    want = {key: members for path in paths for key, members in contents[path]}
    assert raw.keys() == want.keys()
    for key, members in want.items():
        assert {k: v for k, v in raw[key].items() if not k.startswith("__")} == {m[0]: m[1] for m in members}
    for sample in webdataset.WebDataset(urls, shardshuffle=False).decode():
        assert sample["json"]["key"] == sample["__key__"]
        if "video.npy" in sample:
            assert sample["video.npy"].dtype.kind == "f" and sample["video.npy"].ndim == 1
        if "text.npy" in sample:
            assert sample["text.npy"].ndim == 2
    return len(want)


def check_wids(folder, contents):
    for path in [os.path.join(folder, "wids.json")] + glob.glob(os.path.join(folder, "*", "wids.json")):
        with open(path) as file:
            index = json.load(file)
        assert index["__kind__"] == "wids-shard-index-v1" and index["wids_version"] == 1
        for shard in index["shardlist"]:
            tar = os.path.normpath(os.path.join(os.path.dirname(path), shard["url"]))
            assert shard["nsamples"] == len(contents[tar]) and shard["filesize"] == os.path.getsize(tar)


def check_energon_files(folder, contents):
    meta = os.path.join(folder, ".nv-meta")
    with open(os.path.join(meta, ".info.json")) as file:
        info = json.load(file)
    assert set(info) <= {"energon_version", "shard_counts"}
    shards = list(info["shard_counts"])
    assert {os.path.join(folder, s): n for s, n in info["shard_counts"].items()} == {
        path: len(samples) for path, samples in contents.items()}
    with open(os.path.join(meta, "split.yaml")) as file:
        split = yaml.safe_load(file)
    assert set(split) <= {"split_parts", "exclude"} and split["exclude"] == []
    listed = [p for globs in split["split_parts"].values() for g in globs for p in braceexpand.braceexpand(g)]
    assert sorted(listed) == sorted(shards) and len(set(listed)) == len(listed)
    with open(os.path.join(meta, "dataset.yaml")) as file:
        assert yaml.safe_load(file) == {"__module__": "megatron.energon", "__class__": "CrudeWebdataset"}
    with open(os.path.join(meta, "index.uuid")) as file:
        assert uuid.UUID(file.read().strip()).version == 4
    return shards


def check_energon_index(folder, contents, shards):
    db = sqlite3.connect("file:%s?mode=ro" % os.path.join(folder, ".nv-meta", "index.sqlite"), uri=True)
    schema = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"))
    assert schema == TABLES, schema
    names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}
    assert names == INDEXES
    samples, parts = [], []
    for number, shard in enumerate(shards):
        tar = contents[os.path.join(folder, shard)]
        starts = [members[0][2] for _, members in tar] + [os.path.getsize(os.path.join(folder, shard)) - 1024]
        for row, (key, members) in enumerate(tar):
            samples.append((number, key, row, starts[row], starts[row + 1] - starts[row]))
            parts += [(number, row, ext, at, len(data)) for ext, data, _, at in members]
    assert db.execute("SELECT * FROM samples ORDER BY tar_file_id, sample_index").fetchall() == samples
    query = "SELECT * FROM sample_parts ORDER BY tar_file_id, sample_index, content_byte_offset"
    assert db.execute(query).fetchall() == parts
    facts = {row[0]: (row[1], json.loads(row[2])) for row in db.execute("SELECT * FROM media_metadata")}
    kinds = collections.Counter()
    for number, row, ext, _, _ in parts:
        key = samples_key(samples, number, row) + "." + ext
        if ext not in ("mp4", "jpg", "png", "webp"):
            assert key not in facts
            continue
        kind, fact = facts[key]
        kinds[kind] += 1
        assert kind == ("av" if ext == "mp4" else "image")
        assert fact and set(fact) == ({"width", "height", "format", "mode"} if kind == "image" else set(fact) & AV)
    return kinds


def samples_key(samples, number, row):
    return next(s[1] for s in samples if s[0] == number and s[2] == row)


def main():
    folder = os.path.normpath(sys.argv[1])
    paths = sorted(glob.glob(os.path.join(folder, "*", "*", "*.tar")))
    assert paths
    contents = {}
    for path in paths:
        contents[path], size = read_tar(path)
        check_indexes(path, contents[path], size)
    print("tarfile: %d shards, %d samples" % (len(paths), sum(map(len, contents.values()))))
    print("webdataset %s: %d samples" % (webdataset.__version__, check_webdataset(paths, contents)))
    check_wids(folder, contents)
    shards = check_energon_files(folder, contents)
    print("energon: %s" % dict(check_energon_index(folder, contents, shards)))


main()
