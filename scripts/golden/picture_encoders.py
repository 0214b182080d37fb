#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/picture_encoders/ from transformers' CLIP, SigLIP and DINOv2.

Tiny models with random weights, as save_pretrained writes them, with their preprocessor_config.json: clip (both towers,
f32), clip_vision (that of pictures alone, another activation, f16), siglip (both towers, bf16; pictures whose size is no
multiple of the patch), dinov2 (bf16; pictures of another size than the model's own, and not square), dinov2_own (f32,
of its own size), siglip2 (NaFlex, both towers, f16; a grid of places that grows) and siglip2_vision (its tower for
pictures alone, f32; a grid that shrinks). outputs.safetensors has what each computes in f32 for the pictures of noise
that scripts/golden/pictures.py makes, through the processors that resize with Pillow; NaFlex of all shapes in one batch.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 pillow==12.3.0 xxhash
    venv/bin/python scripts/golden/picture_encoders.py
"""
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (CLIPConfig, CLIPModel, CLIPVisionConfig, CLIPVisionModelWithProjection, Dinov2Config,
                          Dinov2Model, Siglip2Config, Siglip2Model, Siglip2VisionConfig, Siglip2VisionModel,
                          SiglipConfig, SiglipModel)
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil

from pictures import noise

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/picture_encoders"
PICTURES = [(40, 30), (17, 50), (24, 24)]
SHAPES = PICTURES + [(90, 7), (3, 61), (5, 6)]
LAYERS = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
VISION = dict(**LAYERS, intermediate_size=24, image_size=24, patch_size=8)
TEXT = dict(vocab_size=40, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
            max_position_embeddings=6, bos_token_id=0, eos_token_id=1, pad_token_id=1)


def clip_input(kind: str, edge: int, height: int, width: int) -> dict:
    return {"image_processor_type": kind, "do_resize": True, "size": {"shortest_edge": edge}, "resample": 3,
            "do_center_crop": True, "crop_size": {"height": height, "width": width}, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.485, 0.456, 0.406],
            "image_std": [0.229, 0.224, 0.225], "do_convert_rgb": True}


def siglip_input(side: int) -> dict:
    return {"image_processor_type": "SiglipImageProcessor", "do_resize": True, "size": {"height": side, "width": side},
            "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def naflex_input(most: int) -> dict:
    return {"image_processor_type": "Siglip2ImageProcessor", "do_resize": True, "resample": 2, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "max_num_patches": most, "patch_size": 8}


NAFLEX = dict(**LAYERS, intermediate_size=24, patch_size=8)
DINO = dict(**LAYERS, mlp_ratio=2, image_size=40, patch_size=8)
MODELS = {
    "clip": (CLIPModel, CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=12), torch.float32,
             CLIPImageProcessorPil, clip_input("CLIPImageProcessor", 24, 24, 24)),
    "clip_vision": (CLIPVisionModelWithProjection,
                    CLIPVisionConfig(**VISION, projection_dim=10, hidden_act="gelu"), torch.float16,
                    CLIPImageProcessorPil, clip_input("CLIPFeatureExtractor", 26, 24, 24)),
    "siglip": (SiglipModel, SiglipConfig(text_config=TEXT, vision_config={**VISION, "image_size": 27}), torch.bfloat16,
               SiglipImageProcessorPil, siglip_input(27)),
    "dinov2": (Dinov2Model, Dinov2Config(**DINO), torch.bfloat16, BitImageProcessorPil,
               clip_input("BitImageProcessor", 32, 24, 32)),
    "dinov2_own": (Dinov2Model, Dinov2Config(**DINO), torch.float32, BitImageProcessorPil,
                   clip_input("BitImageProcessor", 44, 40, 40)),
    "siglip2": (Siglip2Model, Siglip2Config(text_config=TEXT, vision_config={**NAFLEX, "num_patches": 9}), torch.float16,
                Siglip2ImageProcessorPil, naflex_input(20)),
    "siglip2_vision": (Siglip2VisionModel, Siglip2VisionConfig(**NAFLEX, num_patches=64), torch.float32,
                       Siglip2ImageProcessorPil, naflex_input(12)),
}


def vectors(model: torch.nn.Module, inputs: dict) -> torch.Tensor:
    if isinstance(model, (CLIPModel, SiglipModel, Siglip2Model)):
        found = model.get_image_features(**inputs)
        return found if isinstance(found, torch.Tensor) else found.pooler_output
    found = model(**inputs)
    return found.image_embeds if isinstance(model, CLIPVisionModelWithProjection) else found.pooler_output


def main() -> None:
    torch.manual_seed(5)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    tensors = {}
    for name, (model_class, config, dtype, processor, settings) in MODELS.items():
        model = model_class(config).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.normal_(0, 0.3)
                if "norm" in key and key.endswith("weight"):
                    parameter.add_(1)
        model.to(dtype).save_pretrained(GOLDEN / name)
        (GOLDEN / name / "model.safetensors").chmod(0o644)
        (GOLDEN / name / "preprocessor_config.json").write_text(json.dumps(settings, indent=1) + "\n")
        made = processor(**{key: value for key, value in settings.items() if not key.endswith("_type")})
        sizes = SHAPES if name.startswith("siglip2") else PICTURES
        inputs = made([noise(*size, i) for i, size in enumerate(sizes)], return_tensors="pt")
        with torch.no_grad():
            tensors[name] = vectors(model.float(), inputs).contiguous()
        print(name, list(inputs["pixel_values"].shape), list(tensors[name].shape), tensors[name].std().item(),
              (tensors[name][0] - tensors[name][1]).abs().max().item())
        print(" ", [key for key in load_file(GOLDEN / name / "model.safetensors") if "layers.1" not in key][:40])
    save_file(tensors, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "outputs.safetensors").chmod(0o644)
    print(sum(f.stat().st_size for f in GOLDEN.rglob("*") if f.is_file()), "bytes")


main()
