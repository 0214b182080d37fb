#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what diffusers' AutoencoderKLWan makes of small videos.

tests/golden/wan_vae/latents.safetensors: for each of some shapes of the network (narrow, but otherwise
as published) and some videos the latents, and every seventh value of the frames decoded from them.
Weights and videos are not stored: both sides compute them by `draw`, from the tensor's name and the
element's number.

tests/golden/wan_vae/2.1/ and 2.2/: the smallest of both kinds as model folders, as diffusers saves
them, in bf16.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.0 safetensors==0.8.0
    venv/bin/python scripts/golden/wan_vae.py
"""
import json
import math
import pathlib
import shutil

import diffusers
import numpy as np
import torch
from diffusers import AutoencoderKLWan
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/wan_vae"
WAN22 = dict(is_residual=True, patch_size=2, in_channels=12, out_channels=12, scale_factor_spatial=16)
SIZES = [(1, 1, 1), (5, 2, 3), (9, 3, 1), (21, 2, 2)]  # frames, and rows and columns of the latent
CASES = {
    "2.1": (dict(base_dim=6, z_dim=4), SIZES),
    "2.2": (dict(base_dim=4, decoder_base_dim=6, z_dim=5, dim_mult=[1, 2, 4, 4], **WAN22), SIZES),
    # Times and widths that no published model has.
    "early": (dict(base_dim=4, z_dim=3, dim_mult=[1, 2, 3], temperal_downsample=[True, True],
                   num_res_blocks=1, scale_factor_spatial=4), [(9, 3, 2)]),
    "wide": (dict(WAN22, base_dim=4, z_dim=3, dim_mult=[2, 2, 1], temperal_downsample=[True, True],
                  num_res_blocks=1, scale_factor_spatial=8), [(9, 2, 3)]),
}
FOLDERS = {
    "2.1": dict(base_dim=2, z_dim=3, dim_mult=[1, 2, 2], num_res_blocks=1, temperal_downsample=[True, True],
                scale_factor_spatial=4),
    "2.2": dict(WAN22, base_dim=2, decoder_base_dim=4, z_dim=3, dim_mult=[1, 2, 2], num_res_blocks=1,
                temperal_downsample=[True, True], scale_factor_spatial=8),
}


def draw(name: str, count: int) -> np.ndarray:
    """Numbers of variance 1, uniform, from a hash of (name, i)."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    x = (np.arange(count, dtype=np.uint64) * 0x9E3779B1 + seed) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(16))
    return ((x.astype(np.float64) / 2**31 - 1) * math.sqrt(3)).astype(np.float32)


def fill(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for name, p in model.named_parameters():
            v = torch.from_numpy(draw(name, p.numel())).reshape(p.shape)
            if name.endswith("gamma"):
                v = v * np.float32(0.2) + 1
            elif p.ndim > 1:
                v = v * np.float32(1 / math.sqrt(p.numel() / p.shape[0]))
            else:
                v = v * np.float32(0.2)
            p.copy_(v)


def build(config: dict) -> AutoencoderKLWan:
    z = config["z_dim"]
    model = AutoencoderKLWan(**config, latents_mean=[round(0.1 * i - 0.3, 3) for i in range(z)],
                             latents_std=[round(0.5 + 0.1 * i, 3) for i in range(z)]).eval()
    fill(model)
    return model


def run(model: AutoencoderKLWan, case: str, size: tuple, tensors: dict) -> None:
    frames, height, width = size
    space = model.config.scale_factor_spatial
    shape = (1, 3, frames, height * space, width * space)
    pixels = torch.from_numpy(draw("pixels", math.prod(shape))).reshape(shape) * np.float32(0.5)
    # Not what the encoder makes of the pixels, so that an error of one does not hide one of the other.
    shape = (1, model.config.z_dim, 1 + (frames - 1) // 4, height, width)
    z = torch.from_numpy(draw("latents", math.prod(shape))).reshape(shape)
    name = f"{case}.{'x'.join(map(str, size))}"
    with torch.no_grad():
        tensors[name + ".latents"] = model.encode(pixels).latent_dist.mode()[0].contiguous()
        decoded = model.decode(z).sample[0]
    print(name, tuple(decoded.shape), float((decoded.abs() == 1).float().mean()), "clamped")
    tensors[name + ".frames"] = decoded.flatten()[::7].contiguous()


def save_folder(folder: pathlib.Path, model: AutoencoderKLWan) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    GOLDEN.mkdir(exist_ok=True)
    tensors = {}
    for case, (config, sizes) in CASES.items():
        model = build(config)
        for size in sizes:
            run(model, case, size, tensors)
    for name, config in FOLDERS.items():
        model = build(config).to(torch.bfloat16).float()  # as the file has them
        run(model, "folder" + name, (9, 2, 3), tensors)
        save_folder(GOLDEN / name, model)
    save_file(tensors, GOLDEN / "latents.safetensors",
              metadata={"torch": torch.__version__, "diffusers": diffusers.__version__})
    for file in sorted(path for path in GOLDEN.rglob("*") if path.is_file()):
        print(file, file.stat().st_size)


if __name__ == "__main__":
    main()
