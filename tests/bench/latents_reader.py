#!/usr/bin/env python3
# Latents as vfm-pack lays them out, and training-ready batches of them by webdataset or Energon: decoded to
# floats, scaled to model units, stacked; or with noise as well. All in one process, as latents_reader.cc.
# Usage: latents_reader.py make FOLDER SAMPLES
#        latents_reader.py webdataset|energon FOLDER BATCH SECONDS clean|noise      prints samples a second
# SPDX-License-Identifier: Apache-2.0
import glob
import hashlib
import io
import itertools
import json
import os
import sys
import tarfile
import time

import numpy

CHANNELS, FRAMES, SIDE, TOKENS, WIDTH = 24, 3, 8, 12, 64  # quickstart's latents and captions
SHARDS, SIGMA_DATA = 4, 0.5


def npy(values):
    out = io.BytesIO()
    numpy.save(out, values.astype("<f2"))
    return out.getvalue()


def make(folder, count):
    dice = numpy.random.default_rng(0)
    os.makedirs(f"{folder}/train")
    with open(f"{folder}/train/index.jsonl", "w", encoding="utf-8") as index:
        for number in range(SHARDS):
            name = f"latents-{number:06d}.tar"
            offsets = []
            with tarfile.open(f"{folder}/train/{name}", "w", format=tarfile.USTAR_FORMAT) as tar:
                for row in range(count // SHARDS):
                    key = hashlib.md5(f"{number} {row}".encode()).hexdigest()
                    offsets.append(tar.offset)
                    meta = {"key": key, "frames": FRAMES, "height": SIDE, "width": SIDE, "fps": 12.0,
                            "text_tokens": TOKENS, "caption": "a red circle moves left", "source": "raw/shapes.mp4"}
                    for member, data in (("latent.npy", npy(dice.standard_normal((CHANNELS, FRAMES, SIDE, SIDE)))),
                                         ("text.npy", npy(dice.standard_normal((TOKENS, WIDTH)))),
                                         ("json", json.dumps(meta).encode())):
                        info = tarfile.TarInfo(f"{key}.{member}")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
                    line = {"key": key, "shard": name, "row": row, "frames": FRAMES, "height": SIDE,
                            "width": SIDE, "fps": 12.0, "text_tokens": TOKENS}
                    index.write(json.dumps(line) + "\n")
                offsets.append(tar.offset)
            numpy.array(offsets, "<u8").tofile(f"{folder}/train/{name}.idx")
    info = {"version": 1, "tokenizer": {"name": "builtin:wavelet", "channels": CHANNELS},
            "text_encoder": {"name": "builtin:hash", "dim": WIDTH}, "channels": CHANNELS,
            "mean": [0.1] * CHANNELS, "std": [1.1] * CHANNELS}
    with open(f"{folder}/latents.json", "w", encoding="utf-8") as file:
        json.dump(info, file)


class Ready:
    """What makes a decoded sample, and a list of them, ready for training."""

    def __init__(self, folder, noise):
        with open(f"{folder}/latents.json", encoding="utf-8") as file:
            info = json.load(file)
        self.mean = numpy.array(info["mean"], "f4")[:, None, None, None]
        self.factor = SIGMA_DATA / numpy.array(info["std"], "f4")[:, None, None, None]
        self.dice = numpy.random.default_rng(0) if noise else None

    def sample(self, latent, text, meta):
        latent = (latent.astype("f4") - self.mean) * self.factor
        text = text.astype("f4")
        if not (numpy.isfinite(latent).all() and numpy.isfinite(text).all()):
            raise ValueError(meta["key"])
        return latent, text

    def batch(self, samples):
        latents = numpy.stack([latent for latent, _ in samples])
        texts = numpy.concatenate([text for _, text in samples])
        if self.dice is None:
            return latents, texts
        noise = self.dice.standard_normal(latents.shape, "f4")
        scale = 1 / numpy.float32(1 + SIGMA_DATA**2) ** 0.5
        noisy = (latents + noise) * scale
        target = (latents - SIGMA_DATA**2 * scale**2 * (latents + noise)) / (SIGMA_DATA * scale)
        return noisy, target, texts


def webdataset_batches(folder, size, ready):
    import webdataset  # pylint: disable=import-outside-toplevel
    tars = sorted(glob.glob(f"{folder}/train/*.tar"))
    data = webdataset.WebDataset(tars, shardshuffle=False, empty_check=False).decode()
    data = data.to_tuple("latent.npy", "text.npy", "json").map_tuple().map(lambda s: ready.sample(*s))
    return data.batched(size, collation_fn=ready.batch, partial=False)


def energon_batches(folder, size, ready):
    # pylint: disable=import-outside-toplevel
    from megatron import energon
    tars = sorted(f"train/{os.path.basename(tar)}" for tar in glob.glob(f"{folder}/train/*.tar"))
    path = energon.epathlib.EPath(folder)
    if not os.path.exists(f"{folder}/.nv-meta/dataset.yaml"):
        energon.BaseWebdatasetFactory.prepare_dataset(path, tars, split_parts_ratio=[("train", 1.0)], workers=1)
        with open(f"{folder}/.nv-meta/dataset.yaml", "w", encoding="utf-8") as file:
            file.write("__module__: megatron.energon\n__class__: CrudeWebdataset\n")

    @energon.edataclass
    class Latent(energon.Sample):
        arrays: tuple

    @energon.stateless
    def cook(raw):
        return Latent(**energon.basic_sample_keys(raw),
                      arrays=ready.sample(numpy_of(raw["latent.npy"]), numpy_of(raw["text.npy"]), raw["json"]))

    class Encoder(energon.DefaultTaskEncoder):
        cookers = [energon.Cooker(cook)]

        @energon.stateless
        def batch(self, samples):
            return ready.batch([sample.arrays for sample in samples])

    data = energon.get_train_dataset(
        folder, batch_size=size, shuffle_buffer_size=None, max_samples_per_sequence=None, task_encoder=Encoder(),
        worker_config=energon.WorkerConfig(rank=0, world_size=1, num_workers=0))
    return energon.get_loader(data)


def numpy_of(value):
    """Energon gives arrays, or tensors, or bytes, as its version has it."""
    if isinstance(value, (bytes, memoryview)):
        return numpy.load(io.BytesIO(value))
    return value.numpy() if hasattr(value, "numpy") else value


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
        return
    folder, size, limit, noise = sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "noise"
    batches = {"webdataset": webdataset_batches, "energon": energon_batches}[sys.argv[1]]
    endless = (batch for _ in itertools.count() for batch in batches(folder, size, Ready(folder, noise)))
    next(endless)  # imports, and what is set up once, take seconds
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < limit:
        done += len(next(endless)[0])
    print(round(done / (time.perf_counter() - begin)))


main()
