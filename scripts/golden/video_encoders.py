#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/video_encoders/ from transformers' V-JEPA 2.

vjepa2 is a tiny model with random weights (f16), as save_pretrained writes it and its processor: three layers, two heads
of 16 numbers (of which the last four have no position), a predictor that embeddings do not need. outputs.safetensors has
what its encoder computes in f32 of clips of the noise that scripts/golden/pictures.py makes: "wide" and "tall" of eight
frames, "back" with the frames of "wide" from last to first, "few" of three frames that are repeated, and "four" of the
first four of "wide". Each is the mean over tokens after all layers and the norm; "wide.N" is that of a model of the
first N layers. Frames are resized with Pillow, as for encoders of pictures. The processor's own
torchvision rounds some bytes otherwise: the script prints by how much, and what that does to vectors.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 pillow==12.3.0 xxhash
    venv/bin/python scripts/golden/video_encoders.py
"""
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import VJEPA2Config, VJEPA2Model
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.vjepa2.video_processing_vjepa2 import VJEPA2VideoProcessor

from pictures import noise

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/video_encoders"
CROP, FRAMES = 16, 8
WIDE = [noise(40, 30, i) for i in range(FRAMES)]
FEW = WIDE[5:]
CLIPS = {"wide": WIDE, "tall": [noise(17, 50, 20 + i) for i in range(FRAMES)], "back": WIDE[::-1],
         "few": [FEW[(2 * i + 1) * len(FEW) // (2 * FRAMES)] for i in range(FRAMES)], "four": WIDE[:4]}


def vector_of(model: VJEPA2Model, pixels: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.get_vision_features(pixels[None])[0].mean(0)


def main() -> None:
    torch.manual_seed(5)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    config = VJEPA2Config(patch_size=4, crop_size=CROP, frames_per_clip=FRAMES, hidden_size=32, num_attention_heads=2,
                          num_hidden_layers=3, mlp_ratio=48 / 32, pred_hidden_size=8, pred_num_attention_heads=1,
                          pred_num_hidden_layers=1, pred_num_mask_tokens=1)
    model = VJEPA2Model(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.normal_(0, 0.3)
            if "norm" in key and key.endswith("weight"):
                parameter.add_(1)
    folder = GOLDEN / "vjepa2"
    model.half().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    processor = VJEPA2VideoProcessor(crop_size=CROP)
    processor.save_pretrained(folder)
    pillow = CLIPImageProcessorPil(size={"shortest_edge": processor.size["shortest_edge"]}, resample=processor.resample,
                                   crop_size={"height": CROP, "width": CROP}, image_mean=processor.image_mean,
                                   image_std=processor.image_std)
    model.float()
    tensors = {}
    for name, frames in CLIPS.items():
        pixels = pillow(frames, return_tensors="pt")["pixel_values"]
        own = processor(np.stack([np.asarray(frame) for frame in frames]), return_tensors="pt")["pixel_values_videos"][0]
        tensors[name] = vector = vector_of(model, pixels)
        steps = (own - pixels).abs().amax(dim=(0, 2, 3)) * torch.tensor(processor.image_std) * 255
        print(name, list(pixels.shape), vector.std().item(), "torchvision's bytes differ by up to",
              steps.max().item(), "in", ((own - pixels).abs() > 1e-4).float().mean().item(), "of them, its vector by",
              ((vector_of(model, own) - vector).norm() / vector.norm()).item(), "from wide:",
              ((tensors["wide"] - vector).norm() / vector.norm()).item())
    pixels = pillow(WIDE, return_tensors="pt")["pixel_values"]
    layers = model.encoder.layer
    for n in range(1, len(layers)):
        model.encoder.layer = layers[:n]
        tensors[f"wide.{n}"] = vector_of(model, pixels)
    save_file(tensors, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "outputs.safetensors").chmod(0o644)
    print(sum(f.stat().st_size for f in GOLDEN.rglob("*") if f.is_file()), "bytes")


main()
