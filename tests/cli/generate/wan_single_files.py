#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes single files of a Wan, under the names of its authors, beside a folder of diffusers with the same weights.

    wan_single_files.py FOLDER FILES

FOLDER is a tiny pipeline of diffusers. It gets a new transformer, because what files of weights do not say is as in
published models: heads have 128 values. The folder FILES is made.
"""
import json
import pathlib
import random
import shutil
import struct
import sys

folder, files = map(pathlib.Path, sys.argv[1:])
WIDTH, FFN, TEXT, FREQ, CHANNELS = 128, 40, 16, 256, 4  # files of weights have heads of 128
# From the names of diffusers to those of Wan's authors.
AUTHORS = (("condition_embedder.time_embedder.linear_1.", "time_embedding.0."),
           ("condition_embedder.time_embedder.linear_2.", "time_embedding.2."),
           ("condition_embedder.time_proj.", "time_projection.1."),
           ("condition_embedder.text_embedder.linear_1.", "text_embedding.0."),
           ("condition_embedder.text_embedder.linear_2.", "text_embedding.2."),
           (".scale_shift_table", ".modulation"), ("scale_shift_table", "head.modulation"),
           ("proj_out.", "head.head."), (".attn1.", ".self_attn."), (".attn2.", ".cross_attn."), (".to_q.", ".q."),
           (".to_k.", ".k."), (".to_v.", ".v."), (".to_out.0.", ".o."), (".norm2.", ".norm3."),
           (".ffn.net.0.proj.", ".ffn.0."), (".ffn.net.2.", ".ffn.2."))

def shapes() -> dict:
    made = {"patch_embedding.weight": (WIDTH, CHANNELS, 1, 2, 2), "scale_shift_table": (1, 2, WIDTH),
            "blocks.0.scale_shift_table": (1, 6, WIDTH)}
    linear = {"proj_out": (4 * CHANNELS, WIDTH), "blocks.0.ffn.net.0.proj": (FFN, WIDTH),
              "blocks.0.ffn.net.2": (WIDTH, FFN)}
    for part, rows, columns in (("time_embedder.linear_1", WIDTH, FREQ), ("time_embedder.linear_2", WIDTH, WIDTH),
                                ("time_proj", 6 * WIDTH, WIDTH), ("text_embedder.linear_1", WIDTH, TEXT),
                                ("text_embedder.linear_2", WIDTH, WIDTH)):
        linear["condition_embedder." + part] = (rows, columns)
    for attention in ("blocks.0.attn1.", "blocks.0.attn2."):
        linear |= {attention + part: (WIDTH, WIDTH) for part in ("to_q", "to_k", "to_v", "to_out.0")}
        made |= {attention + part + ".weight": (WIDTH,) for part in ("norm_q", "norm_k")}
    for name, shape in linear.items():
        made |= {name + ".weight": shape, name + ".bias": shape[:1]}
    return made | {"patch_embedding.bias": (WIDTH,), "blocks.0.norm2.weight": (WIDTH,), "blocks.0.norm2.bias": (WIDTH,)}

def write(path: pathlib.Path, names: dict, data: bytes) -> None:
    header = json.dumps(names).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)

def transformer() -> tuple[dict, bytes]:
    numbers, names, data = random.Random(48), {}, b""
    for name, shape in sorted(shapes().items()):
        count = 1
        for size in shape:
            count *= size
        norm = "norm" in name and name.endswith("weight")
        scale = 1.4 / (count / shape[0])**0.5 if len(shape) > 1 else 0.1
        values = struct.pack(f"<{count}e", *(norm + numbers.gauss(0, min(scale, 0.3)) for _ in range(count)))
        names[name] = {"dtype": "F16", "shape": shape, "data_offsets": (len(data), len(data) + len(values))}
        data += values
    return names, data

def of_authors(name: str) -> str:
    for here, there in AUTHORS:
        name = name.replace(here, there)
    return name

names, data = transformer()
config = folder / "transformer/config.json"
said = json.loads(config.read_text())
config.write_text(json.dumps(said | {"num_attention_heads": 1, "attention_head_dim": WIDTH, "num_layers": 1}))
write(folder / "transformer/diffusion_pytorch_model.safetensors", names, data)
# A file of this VAE does not have its statistics.
config = folder / "vae/config.json"
said = json.loads(config.read_text())
config.write_text(json.dumps({key: said[key] for key in said if not key.startswith("latents_")}))
files.mkdir()
theirs = {"model.diffusion_model." + of_authors(name): there for name, there in names.items()}
write(files / "wan2.1_t2v.safetensors", theirs, data)
shutil.copy(folder / "vae/diffusion_pytorch_model.safetensors", files / "wan_2.1_vae.safetensors")
shutil.copy(folder / "text_encoder/model.safetensors", files / "umt5_xxl.safetensors")
shutil.copy(folder / "tokenizer/tokenizer.json", files)
