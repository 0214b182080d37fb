#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The way back for tokenizers: one that vfm-train trained, opened by diffusers, gives the same latents
and pixels as in vfm-pack.

Trains a tiny tokenizer, encodes clips with it (vfm-pack --tokenizer, raw weights), and computes the
same with diffusers' AutoencoderKLCosmos.from_pretrained on the checkpoint's model folder, from the pixels that
FFmpeg decodes. Prints the differences.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1
    PATH=build/tools:$PATH venv/bin/python scripts/golden/way_back_tokenizer.py

Recorded: RECORD
"""
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile

import numpy as np
import torch
from diffusers import AutoencoderKLCosmos

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = """
model: {type: tokenizer, latent_channels: 6, encoder_block_out_channels: [8, 8, 12, 12],
  decode_block_out_channels: [8, 8, 12, 12], num_layers: 1, patch_size: 2,
  spatial_compression_ratio: 4, temporal_compression_ratio: 4}
data: {frames: 5, size: 32, shorter_side: 32, tokens: 256}
optimizer: {lr: 6e-3, weight_decay: 0}
schedule: {warmup: 5}
validation: {every: 0}
train: {steps: 40}
"""


def shell(command: str, cwd: pathlib.Path) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=cwd, check=True,
                   stdout=subprocess.DEVNULL)


def members(folder: pathlib.Path, ending: str) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.rglob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith(ending):
                    found[member.name.split(".")[0]] = tar.extractfile(member).read()
    return found


def pixels(video: bytes, folder: pathlib.Path) -> np.ndarray:
    path = folder / "clip.mp4"
    path.write_bytes(video)
    raw = subprocess.run(["ffmpeg", "-loglevel", "error", "-i", path, "-vf", "scale=flags=accurate_rnd",
                          "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 64, 64, 3)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name)
        (run / "recipe.yaml").write_text(RECIPE)
        shell(f"""{ROOT}/scripts/draw-corpus raw --shots 6
find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o clips | vfm-shard --keep-duplicates -o dataset
vfm-train recipe.yaml --device cpu --data dataset --out run
vfm-pack --tokenizer run/checkpoints/step-00000040/model --size 64 --frames 17 -o latents dataset""", run)
        model = AutoencoderKLCosmos.from_pretrained(run / "run/checkpoints/step-00000040/model").eval()
        assert model.config.latents_mean is None
        ours = members(run / "latents", ".latent.npy")
        videos = members(run / "dataset", ".mp4")
        facts = {k: json.loads(v) for k, v in members(run / "latents", ".json").items()}
        worst = 0.0
        for key, data in ours.items():
            first = facts[key]["first_frame"]
            frames = pixels(videos[key], run)[first:first + 17]
            x = torch.from_numpy(frames.astype(np.float32) / 127.5 - 1).permute(3, 0, 1, 2)[None]
            with torch.no_grad():
                theirs = model.encode(x).latent_dist.mode()[0].numpy()
            latent = np.load(io.BytesIO(data)).astype(np.float32)
            worst = max(worst, float(np.abs(latent - theirs).max() / np.abs(theirs).max()))
        print(f"{len(ours)} clips: largest difference of latents {worst:.2e} of the largest value")
        assert worst < 5e-3, "more than the 16 bits of the latents"


if __name__ == "__main__":
    main()
