#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what diffusers' AutoencoderKLCosmos makes of small videos.

tests/golden/cosmos_vae.safetensors: for each of some shapes of the network (narrow, but otherwise as
published, and one discrete: diffusers' encoder and decoder with NVIDIA's FSQ between) and some videos
the latents, and every seventh value of the frames decoded from them. Weights and videos are not
stored: both sides compute them by `draw`, from the tensor's name and the element's number.

tests/golden/cosmos_vae/: the smallest of them as a model folder, as diffusers saves it, and
tests/golden/cosmos_dv/: the discrete one's, in bf16.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 safetensors==0.8.0
    venv/bin/python scripts/golden/cosmos_tokenizer.py
"""
import json
import math
import pathlib
import shutil

import diffusers
import numpy as np
import torch
from diffusers import AutoencoderKLCosmos
from diffusers.models.autoencoders.autoencoder_kl_cosmos import CosmosCausalConv3d
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
WIDE = dict(encoder_block_out_channels=(8, 12, 16, 16), decode_block_out_channels=(12, 16, 16, 16),
            latent_channels=4, num_layers=2)
CASES = {
    "cv8x8x8": (dict(WIDE), [(1, 16, 32), (9, 32, 16), (17, 16, 16)]),
    "cv4x8x8": (dict(WIDE, patch_size=2, temporal_compression_ratio=4), [(1, 16, 16), (9, 16, 32)]),
    "cv8x16x16": (dict(WIDE, spatial_compression_ratio=16), [(9, 32, 48)]),
    "attending": (dict(WIDE, resolution=64, attention_resolutions=(8,)), [(17, 32, 16)]),
    "discrete": (dict(WIDE, latent_channels=5, levels=[8, 8, 8, 5, 5, 5]), [(9, 32, 32)]),
}
SMALL = dict(encoder_block_out_channels=(4, 4, 6, 6), decode_block_out_channels=(4, 4, 6, 6),
             latent_channels=3, num_layers=1, patch_size=2, spatial_compression_ratio=4,
             temporal_compression_ratio=4)


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
            if p.ndim > 1:
                v = v * np.float32(1 / math.sqrt(p.numel() / p.shape[0]))
            else:
                v = v * np.float32(0.2) + (1 if name.endswith("norm.weight") else 0)
            p.copy_(v)


def build(config: dict) -> AutoencoderKLCosmos:
    config = dict(config)
    levels = config.pop("levels", None)
    model = AutoencoderKLCosmos(**config)
    if levels:
        model.quant_conv = CosmosCausalConv3d(config["latent_channels"], len(levels), 1, padding=0)
        model.post_quant_conv = CosmosCausalConv3d(len(levels), config["latent_channels"], 1, padding=0)
    fill(model)
    return model


def quantise(z: torch.Tensor, levels: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes (t, h, w) and values of z (1, C, t, h, w)."""
    z = z.movedim(1, -1)
    steps = torch.tensor(levels)
    half = (steps - 1) * (1 + 1e-3) / 2
    offset = torch.where(steps % 2 == 0, 0.5, 0.0)
    level = (torch.tanh(z + torch.atanh(offset / half)) * half - offset).round()
    basis = torch.cumprod(torch.tensor([1] + levels[:-1]), 0)
    codes = ((level + steps // 2) * basis).sum(-1).to(torch.int32)
    return codes[0], (level / (steps // 2)).movedim(-1, 1)


def run(model: AutoencoderKLCosmos, case: str, levels: list[int] | None, size: tuple, tensors: dict) -> None:
    name = f"{case}.{'x'.join(map(str, size))}"
    pixels = torch.from_numpy(draw("pixels", 3 * math.prod(size))).reshape(1, 3, *size) * np.float32(0.5)
    with torch.no_grad():
        z = model.encode(pixels).latent_dist.mode()
        tensors[name + ".latents"] = z[0].contiguous()
        if levels:
            tensors[name + ".codes"], z = quantise(z, levels)
        frames = model.decode(z).sample
    tensors[name + ".frames"] = frames[0].flatten()[::7].contiguous()


def save_folder(folder: pathlib.Path, model: AutoencoderKLCosmos, extra: dict, dtype: torch.dtype) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    for key in ("latents_mean", "latents_std"):
        config.pop(key)
    config.update(extra)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    torch.set_num_threads(1)
    tensors = {}
    for case, (config, sizes) in CASES.items():
        model = build(config)
        for size in sizes:
            run(model, case, config.get("levels"), size, tensors)
    small = build(SMALL)
    run(small, "folder", None, (9, 16, 16), tensors)
    save_file(tensors, GOLDEN / "cosmos_vae.safetensors",
              metadata={"torch": torch.__version__, "diffusers": diffusers.__version__})
    c, f = SMALL["latent_channels"], 3
    statistics = dict(latents_mean=[round(0.1 * i - 0.3, 3) for i in range(c * f)],
                      latents_std=[round(0.5 + 0.1 * i, 3) for i in range(c * f)])
    save_folder(GOLDEN / "cosmos_vae", small, statistics, torch.float32)
    levels = CASES["discrete"][0]["levels"]
    discrete = build(dict(SMALL, levels=levels))
    save_folder(GOLDEN / "cosmos_dv", discrete,
                dict(_class_name="CausalDiscreteVideoTokenizer", levels=levels, z_channels=3), torch.bfloat16)
    for path in sorted(GOLDEN.glob("cosmos_*")):
        files = [path] if path.is_file() else sorted(path.iterdir())
        for file in files:
            print(file, file.stat().st_size)


if __name__ == "__main__":
    main()
