#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/pictures.json: what Pillow and transformers' processors make of pictures of noise.

Of "resize" cases the hash (XXH3, 128 bits) of the bytes of Image.resize(); of "input" cases that of the floats that
the Pillow processor of a preprocessor_config.json gives. The noise of a seed is a linear congruential generator's, so
no picture is kept. Pillow is the last before 13, which goes along columns first where that is less work, so that pixels
differ by a rounding. With --random SEED COUNT: as many cases with sizes by chance, on standard output, for the test
that compares with Pillow itself.

    python3 -m venv venv && venv/bin/pip install pillow==12.3.0 numpy xxhash torch==2.15.0 transformers==5.24.0
    venv/bin/python scripts/golden/pictures.py
    VFM_PYTHON=venv/bin/python build/tests/unit/unit_pictures '[pillow]'
"""
import json
import pathlib
import random
import sys

import numpy as np
import xxhash
from PIL import Image

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/pictures.json"
LANCZOS, BILINEAR, BICUBIC = 1, 2, 3
SIZES = [((1, 1), (7, 5)), ((1, 9), (4, 4)), ((9, 1), (3, 2)), ((2, 3), (1, 1)), ((5, 7), (5, 7)), ((31, 17), (8, 8)),
         ((17, 31), (64, 48)), ((64, 48), (63, 48)), ((64, 48), (64, 49)), ((100, 3), (10, 30)), ((160, 90), (24, 24)),
         ((90, 160), (56, 99)), ((333, 211), (32, 20)), ((40, 40), (121, 77)), ((257, 129), (2, 3)),
         ((2, 240), (7, 19)), ((1, 101), (3, 100)), ((2, 200), (7, 19))]

CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
CLIP = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": 24}, "resample": 3,
        "do_center_crop": True, "crop_size": {"height": 24, "width": 24}, "do_rescale": True,
        "rescale_factor": 0.00392156862745098, "do_normalize": True, "image_mean": CLIP_MEAN, "image_std": CLIP_STD,
        "do_convert_rgb": True}
SIGLIP = {"image_processor_type": "SiglipImageProcessor", "do_resize": True, "size": {"height": 20, "width": 30},
          "resample": 2, "do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True,
          "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
DINO = {"image_processor_type": "BitImageProcessor", "crop_size": {"height": 28, "width": 28}, "do_center_crop": True,
        "do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3,
        "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 32}}
NAFLEX = {"image_processor_type": "Siglip2ImageProcessor", "do_convert_rgb": None, "do_resize": True, "resample": 2,
          "do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True,
          "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "max_num_patches": 64, "patch_size": 4,
          "processor_class": "Siglip2Processor"}
# As openai/clip-vit-* have it: numbers for sizes, and defaults for the rest.
OLD = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 24, "crop_size": 24, "do_resize": True,
       "do_center_crop": True, "do_normalize": True, "resample": 3, "image_mean": CLIP_MEAN, "image_std": CLIP_STD}
INPUTS = [CLIP, SIGLIP, DINO, OLD,
          {**DINO, "crop_size": {"height": 41, "width": 15}},              # higher than what is resized
          {**DINO, "crop_size": {"height": 50, "width": 51}},              # both ways
          {**CLIP, "do_resize": False, "crop_size": {"height": 33, "width": 20}},
          {**CLIP, "do_rescale": False}, {**CLIP, "do_normalize": False}, {**SIGLIP, "resample": 1},
          NAFLEX, {**NAFLEX, "max_num_patches": 7, "patch_size": 14, "resample": 3}]
PICTURES = [(64, 48), (48, 65), (30, 30), (7, 90), (1, 1), (201, 67)]


def noise(width: int, height: int, seed: int) -> Image.Image:
    values = bytearray(3 * width * height)
    for i in range(len(values)):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        values[i] = seed >> 24
    return Image.frombytes("RGB", (width, height), bytes(values))


def hash_of(array: np.ndarray) -> str:
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(array).tobytes())


def resized(picture: tuple[int, int], to: tuple[int, int], resample: int, seed: int) -> dict:
    result = noise(*picture, seed).resize(to, resample=resample)
    return {"from": picture, "to": to, "resample": resample, "seed": seed, "hash": hash_of(np.asarray(result))}


def by_processor(config: dict, picture: tuple[int, int], seed: int) -> dict:
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
    from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil
    kind = config.get("image_processor_type", config.get("feature_extractor_type"))
    made = {"C": CLIPImageProcessorPil, "S": SiglipImageProcessorPil, "B": BitImageProcessorPil}[kind[0]]
    # The backend has no name in these files.
    settings = {key: value for key, value in config.items() if not key.endswith("_type")}
    if kind.startswith("Siglip2"):
        made = Siglip2ImageProcessorPil
        settings.pop("processor_class")
    result = made(**settings)(noise(*picture, seed), return_tensors="np")
    values = np.asarray(result["pixel_values"])
    if kind.startswith("Siglip2"):  # patches of a picture, row by row: the picture
        (down, across), side = result["spatial_shapes"][0], config["patch_size"]
        values = values[:, :down * across].reshape(1, down, across, side, side, 3)
        values = values.transpose(0, 5, 1, 3, 2, 4).reshape(1, 3, down * side, across * side)
    assert values.dtype == np.float32 and values.shape[:2] == (1, 3), (values.dtype, values.shape)
    return {"picture": picture, "seed": seed, "size": values.shape[2:], "hash": hash_of(values)}


def by_chance(seed: int, count: int) -> dict:
    draw = random.Random(seed)
    side = lambda: draw.choice([draw.randint(1, 8), draw.randint(1, 64), draw.randint(1, 300)])
    return {"resize": [resized((side(), side()), (side(), side()), draw.choice([LANCZOS, BILINEAR, BICUBIC]), i)
                       for i in range(count)]}


def main() -> None:
    if sys.argv[1:2] == ["--random"]:
        print(json.dumps(by_chance(int(sys.argv[2]), int(sys.argv[3]))))
        return
    cases = {"resize": [resized(*sizes, resample, i) for i, sizes in enumerate(SIZES)
                        for resample in (LANCZOS, BILINEAR, BICUBIC)],
             "input": [{"config": config, "of": [by_processor(config, picture, i) for i, picture in enumerate(PICTURES)]}
                       for config in INPUTS]}
    lines = ["{", *(f' "{kind}": [\n' + ",\n".join("  " + json.dumps(case) for case in cases[kind]) + "\n ]" +
                    ("," if kind == "resize" else "") for kind in cases), "}", ""]
    GOLDEN.write_text("\n".join(lines))
    print(GOLDEN.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
