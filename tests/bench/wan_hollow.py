#!/usr/bin/env python3
# Writes a Wan folder of a published size whose values are a hole in a file, for vfm-generate cost. Needs diffusers.
# Usage: wan_hollow.py FOLDER t2v-1.3b|t2v-14b|t2v-a14b|ti2v-5b
# SPDX-License-Identifier: Apache-2.0
import json
import math
import pathlib
import shutil
import struct
import sys

import torch
from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanTransformer3DModel
from transformers import UMT5Config, UMT5EncoderModel

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
NETWORKS = {
    "t2v-1.3b": {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30},
    "t2v-14b": {},
    "t2v-a14b": {},
    "ti2v-5b": {"num_attention_heads": 24, "ffn_dim": 14336, "num_layers": 30, "in_channels": 48, "out_channels": 48},
}
VAE22 = {"base_dim": 160, "decoder_base_dim": 256, "z_dim": 48, "is_residual": True, "in_channels": 12,
         "out_channels": 12, "patch_size": 2, "scale_factor_spatial": 16, "scale_factor_temporal": 4,
         "latents_mean": [0.0] * 48, "latents_std": [1.0] * 48}


def write(folder: pathlib.Path, name: str, model, without: str = "") -> None:
    """Writes the header of the model's weights in bf16, and the hole."""
    folder.mkdir(parents=True)
    header, at = {}, 0
    for key, value in model.state_dict().items():
        if key != without:
            size = 2 * math.prod(value.shape)
            header[key] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    with open(folder / name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def main() -> None:
    folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    experts, small = name == "t2v-a14b", name == "ti2v-5b"
    parts = ["transformer", "transformer_2"] if experts else ["transformer"]
    config = UMT5Config(vocab_size=256384, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64,
                        feed_forward_proj="gated-gelu", architectures=["UMT5EncoderModel"])
    with torch.device("meta"):
        network = WanTransformer3DModel(**NETWORKS[name])
        vae = AutoencoderKLWan(**(VAE22 if small else {}))
        text = UMT5EncoderModel(config)
    for part, model in [(part, network) for part in parts] + [("vae", vae)]:
        write(folder / part, "diffusion_pytorch_model.safetensors", model)
        model.save_config(folder / part)
    write(folder / "text_encoder", "model.safetensors", text, "encoder.embed_tokens.weight")
    config.save_pretrained(folder / "text_encoder")
    UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True,
                            flow_shift=5.0 if small else 3.0).save_config(folder / "scheduler")
    shutil.copytree(GOLDEN / "t5/v1_0/tokenizer", folder / "tokenizer")
    index = {"_class_name": "WanPipeline", "scheduler": ["diffusers", "UniPCMultistepScheduler"],
             "text_encoder": ["transformers", "UMT5EncoderModel"], "tokenizer": ["transformers", "T5TokenizerFast"],
             "vae": ["diffusers", "AutoencoderKLWan"], **{part: ["diffusers", "WanTransformer3DModel"] for part in parts}}
    if experts:
        index["boundary_ratio"] = 0.875
    if small:
        index["expand_timesteps"] = True
    (folder / "model_index.json").write_text(json.dumps(index))


main()
