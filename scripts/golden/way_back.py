#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The way back: a checkpoint that vfm-train wrote, opened by diffusers, gives the same output.

Trains a tiny model for a few steps, and adapters for it (on its averaged weights, which vfm-train
--init takes), lets vfm-generate make a latent with each in one Euler step from a given noise, and
computes the same with diffusers: CosmosTransformer3DModel.from_pretrained on the checkpoint's model
folder, and load_lora_adapter on that of the adapters. Prints the differences, and writes what diffusers
gave to tests/golden/way_back.json, which tests/pipeline/way_back.bats compares with what vfm gives.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        peft==0.21.2
    PATH=build/tools:$PATH venv/bin/python scripts/golden/way_back.py

Recorded: 2026-11-21, largest difference 1.4e-7 of the largest value, with the adapters 2.7e-7.
"""
import json
import math
import pathlib
import subprocess
import tempfile

import diffusers
import numpy as np
import peft
import torch
from diffusers import CosmosTransformer3DModel
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
    stride = max(1, theirs.size // 64)
    return {"difference": difference, "stride": stride,
            "values": [round(float(v), 6) for v in theirs.ravel()[::stride][:64]]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder)
        subprocess.run([ROOT / "tests/pipeline/way-back", run], check=True, stdout=subprocess.DEVNULL)
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
    path = ROOT / "tests/golden/way_back.json"
    path.write_text(json.dumps(golden) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
