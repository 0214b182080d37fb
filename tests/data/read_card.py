#!/usr/bin/env python3
"""Reads a folder of shards by its dataset card: prints "CONFIG SPLIT SAMPLES" for each split of each configuration.

By load_dataset() where Hugging Face's datasets is installed (with a feature for JSON), else by the card's YAML and
globs alone. Fails if a member has no feature, or a shard is in no split or in two.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import glob
import os
import sys
import tarfile

import yaml

folder = sys.argv[1]
card = yaml.safe_load(open(os.path.join(folder, "README.md")).read().split("---\n")[1])
features = {info["config_name"]: {f["name"] for f in info["features"]} for info in card.get("dataset_info", [])}
seen = collections.Counter()
for config in card["configs"]:
    name = config["config_name"]
    for data in config["data_files"]:
        keys = set()
        for pattern in data["path"]:
            tars = sorted(glob.glob(pattern, root_dir=folder))
            assert tars, f"{pattern} matches nothing"
            for tar in tars:
                seen[tar] += 1
                for member in tarfile.open(os.path.join(folder, tar)).getnames():
                    key, extension = member.split(".", 1)
                    keys.add(key)
                    assert extension in features.get(name, {extension}), f"no feature for {member}"
        print(name, data["split"], len(keys))
there = {os.path.relpath(path, folder) for path in glob.glob(folder + "/**/*.tar", recursive=True)
         if not path.endswith((".embed.tar", ".caption.tar"))}
assert set(seen) == there and max(seen.values()) == 1, (seen, there)

try:
    import datasets
    datasets.Json
except (ImportError, AttributeError):
    sys.exit()
for config in card["configs"]:
    loaded = datasets.load_dataset(folder, config["config_name"], cache_dir="hf-cache")
    for split, data in loaded.items():
        for column, feature in data.features.items():
            if isinstance(feature, (datasets.Video, datasets.Image)):
                data = data.cast_column(column, type(feature)(decode=False))
        rows = list(data)
        assert all(isinstance(row["json"], dict) and row["json"]["key"] == row["__key__"] for row in rows)
        print("load_dataset:", config["config_name"], split, len(rows))
