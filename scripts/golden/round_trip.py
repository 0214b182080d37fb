#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The round trip: a checkpoint that vfm-train wrote, opened by diffusers, gives the same output.

Trains a tiny model for a few steps, and adapters for it (on its averaged weights, which vfm-train
--init takes), lets vfm-generate make a latent with each in one Euler step from a given noise, and
computes the same with diffusers: CosmosTransformer3DModel.from_pretrained on the checkpoint's model
folder, and load_lora_adapter on that of the adapters. Then the same of a tokenizer that vfm-train trained,
an AutoencoderKLCosmos: the latent that vfm-pack made of a clip, and the frames that vfm-generate
made of a latent. Prints the differences, and writes what diffusers gave to tests/golden/round_trip.json, which
tests/pipeline/round_trip.bats compares with what vfm gives.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        peft==0.21.2
    PATH=build/tools:$PATH venv/bin/python scripts/golden/round_trip.py

Recorded: 2026-11-26, largest difference 2.1e-7 of the largest value, with the adapters 2.3e-7; the
tokenizer's latent, which vfm-pack rounds to f16, 2.9e-4, its frames half a level of 255: all of it rounding.
"""
import io
import json
import math
import pathlib
import subprocess
import tarfile
import tempfile

import diffusers
import numpy as np
import peft
import torch
from diffusers import AutoencoderKLCosmos, CosmosTransformer3DModel
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIGMA, SCALE = 40.0, 0.5


def compare(run: pathlib.Path, name: str, network, train: dict) -> dict:
    """What diffusers gives, and how far from it vfm's latent in latents-NAME is."""
    noise = np.load(run / "noise.npy")
    ours = load_file(next(run.glob(f"latents-{name}/*.latents.safetensors")))["latent"]
    variance = SIGMA**2 + SCALE**2
    x = torch.from_numpy(noise)[None] * SIGMA
    text = torch.zeros(1, 1, network.config.text_embed_dim)
    with torch.no_grad():
        output = network(hidden_states=x / math.sqrt(variance), encoder_hidden_states=text,
                         timestep=torch.tensor([math.log(SIGMA) / 4]), fps=12,
                         padding_mask=torch.zeros(1, 1, *x.shape[-2:]), return_dict=False)[0]
    x0 = SCALE**2 / variance * x + SIGMA * SCALE / math.sqrt(variance) * output
    # The network is most of it, and its blocks, which begin as nothing, do something.
    part = (SIGMA * SCALE / math.sqrt(variance) * output).std() / x0.std()
    gates = max(p.abs().max() for n, p in network.named_parameters() if "norm1.linear_2" in n)
    print(f"{name}: the network's part {part:.2f}, largest weight of a gate {gates:.3f}")
    assert part > 0.5 and gates > 0.01
    scale = train["latent_scale"]
    mean, std = (np.array(scale[key]).reshape(-1, 1, 1, 1) for key in ("mean", "std"))
    theirs = x0[0].numpy() / SCALE * std + mean
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    print(f"{name}: largest difference {difference:.2e} of the largest value")
    return {"difference": difference, **some(theirs)}


def some(values: np.ndarray) -> dict:
    stride = max(1, values.size // 64)
    return {"stride": stride, "values": [round(float(v), 6) for v in values.ravel()[::stride][:64]]}


def compare_tokenizer(run: pathlib.Path) -> dict:
    """What diffusers' tokenizer gives for the clip and for the latent, and how far from it vfm is."""
    checkpoint = next(run.glob("tokenizer/checkpoints/step-*"))
    vae = AutoencoderKLCosmos.from_pretrained(checkpoint / "model")
    vae.load_state_dict(load_torch(checkpoint / "state/ema.safetensors"))  # which vfm-pack takes
    clip = subprocess.run(["ffmpeg", "-v", "error", "-i", run / "clip.mkv", "-f", "rawvideo", "-pix_fmt",
                           "rgb24", "-"], check=True, capture_output=True).stdout
    pixels = torch.frombuffer(bytearray(clip), dtype=torch.uint8).reshape(1, 9, 32, 32, 3)
    pixels = pixels.permute(0, 4, 1, 2, 3) / 127.5 - 1
    latent = load_file(next(run.glob("latents-drawer/*.latents.safetensors")))["latent"]
    with torch.no_grad():
        encoded = vae.encode(pixels).latent_dist.mode()[0].numpy()
        frames = vae.decode(torch.from_numpy(latent)[None]).sample[0]
    with tarfile.open(next(run.glob("tokens/*/clip.tar"))) as tar:
        packed = np.load(io.BytesIO(tar.extractfile("clip.latent.npy").read()))
    difference = float(np.abs(packed - encoded).max() / np.abs(encoded).max())
    levels = ((frames.clamp(-1, 1) + 1) * 127.5).permute(1, 2, 3, 0).numpy()
    decoded = np.frombuffer((run / "decoded.rgb").read_bytes(), np.uint8).reshape(levels.shape)
    apart = float(np.abs(decoded - levels).max())
    print(f"tokenizer: largest difference of the latent {difference:.2e} of the largest value, of frames "
          f"{apart:.2f} of 255; values {levels.min():.0f} to {levels.max():.0f}")
    assert levels.std() > 10
    return {"latent": {"difference": difference, **some(encoded)},
            "frames": {"difference": apart, **some(levels)}}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder)
        subprocess.run([ROOT / "tests/pipeline/round-trip", run], check=True, stdout=subprocess.DEVNULL)
        checkpoint = next(run.glob("run/checkpoints/step-*"))
        train = json.loads((checkpoint / "train.json").read_text())
        network = CosmosTransformer3DModel.from_pretrained(checkpoint / "model").eval()
        golden = {"diffusers": diffusers.__version__, "torch": torch.__version__,
                  "peft": peft.__version__, "run": compare(run, "run", network, train)}

        network.load_state_dict(load_torch(checkpoint / "state/ema.safetensors"))
        network.load_lora_adapter(next(run.glob("adapters/checkpoints/step-*")) / "lora",
                                  weight_name="pytorch_lora_weights.safetensors")
        golden["adapters"] = compare(run, "adapters", network, train)
        network.disable_lora()
        without = compare(run, "adapters", network, train)["difference"]
        assert without > 1e-3, without  # the adapters do something
        golden["tokenizer"] = compare_tokenizer(run)
    path = ROOT / "tests/golden/round_trip.json"
    path.write_text(json.dumps(golden) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
