#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/wan_pipeline/ from diffusers' WanPipeline and WanImageToVideoPipeline.

Whole pipelines, from prompt to frames, with tiny random networks: t2v (Wan 2.1), i2v (Wan 2.2, 36 channels
in, here 12) and ti2v (Wan 2.2 5B, with the tokenizer of that). Their text encoder and text tokenizer are
those of tests/golden/t5, which t5.py wrote. Kept are the parts that are nowhere else, and of one clip each
the first noise, the last latent in model units and the 8-bit frames; ti2v has a clip without an image, too.
The images are image.png, of another size than the clips. i2v has t2v's tokenizer.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 transformers==5.24.0 \
        safetensors==0.8.0 ftfy==6.3.1
    venv/bin/python scripts/golden/wan_pipeline.py
"""
import copy
import pathlib
import shutil
import tempfile

import numpy
import torch
from diffusers import (AutoencoderKLWan, FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler,
                       WanImageToVideoPipeline, WanPipeline, WanTransformer3DModel)
from PIL import Image
from transformers import PreTrainedTokenizerFast, UMT5EncoderModel

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
TARGET = GOLDEN / "wan_pipeline"
TRANSFORMER = dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4,
                   out_channels=4, text_dim=16, freq_dim=256, ffn_dim=40, num_layers=2, cross_attn_norm=True,
                   qk_norm="rms_norm_across_heads", eps=1e-6, rope_max_seq_len=1024)
SMALLER = TRANSFORMER | dict(num_attention_heads=1, num_layers=1, ffn_dim=24)
VAE = dict(base_dim=4, z_dim=4, dim_mult=[1, 1, 1, 1], num_res_blocks=1, attn_scales=[],
           temperal_downsample=[False, True, True], latents_mean=[-0.3, 0.2, 0.05, 0.4],
           latents_std=[1.4, 0.8, 1.1, 0.6])
VAE_22 = VAE | dict(is_residual=True, in_channels=12, out_channels=12, patch_size=2, decoder_base_dim=4,
                    scale_factor_spatial=16)
# The white space and the marks of HTML are cleaned away.
CALL = dict(prompt=" a red fox &amp;amp; its  cubs\n", negative_prompt="blurry", height=32, width=32, num_frames=9,
            num_inference_steps=6, guidance_scale=4.0)


def randomise(module: torch.nn.Module, seed: int, deviation: float) -> torch.nn.Module:
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            scale = min(deviation, 1.4 / parameter[0].numel()**0.5) if parameter.ndim > 1 else 0.1
            parameter.normal_(0, scale if "gamma" not in name else 0.1)
            if ("norm" in name and name.endswith("weight")) or "gamma" in name:
                parameter.add_(1)
            parameter.copy_(parameter.half())  # as it is stored
    return module.eval()


def transformer(seed: int, **config) -> WanTransformer3DModel:
    return randomise(WanTransformer3DModel(**config), seed, 0.3)


def pipeline(kind: type, network: WanTransformer3DModel, vae: AutoencoderKLWan, **config):
    made = kind(
        text_encoder=UMT5EncoderModel.from_pretrained(GOLDEN / "t5/umt5", dtype=torch.float32),
        tokenizer=PreTrainedTokenizerFast(tokenizer_file=str(GOLDEN / "t5/v1_0/tokenizer/tokenizer.json"),
                                          eos_token="</s>", pad_token="<pad>", unk_token="<unk>"),
        transformer=network, vae=vae,
        scheduler=UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True,
                                          num_train_timesteps=1000, flow_shift=3.0), **config)
    made.set_progress_bar_config(disable=True)
    return made


def write_folder(name: str, made, parts: tuple) -> None:
    with tempfile.TemporaryDirectory() as whole:
        # Copies: half() would round the tables of positions, too.
        copy.deepcopy(made.transformer).half().save_pretrained(pathlib.Path(whole) / "transformer")
        copy.deepcopy(made.vae).half().save_pretrained(pathlib.Path(whole) / "vae")
        made.scheduler.save_pretrained(pathlib.Path(whole) / "scheduler")
        made.save_config(whole)
        (TARGET / name).mkdir(parents=True)
        for part in ("model_index.json", "transformer", "scheduler", *parts):
            shutil.move(pathlib.Path(whole) / part, TARGET / name / part)
    for file in (TARGET / name).rglob("*.safetensors"):
        file.chmod(0o644)


def write_clip(name: str, made, call: dict, noise: torch.Tensor, frames: bool = True) -> None:
    latent = made(**call, latents=noise[None].clone(), output_type="latent").frames[0]
    numpy.save(TARGET / f"{name}.latent.npy", latent.numpy())
    said = [name, tuple(latent.shape), latent.mean().item(), latent.std().item()]
    if frames:
        video = numpy.rint(numpy.asarray(made(**call, latents=noise[None].clone(), output_type="np").frames[0]) * 255)
        (TARGET / f"{name}.rgb").write_bytes(video.astype(numpy.uint8).tobytes())
        said += [video.shape, video.mean(), video.std()]
    print(*said)


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir()
    vae = randomise(AutoencoderKLWan(**VAE), 21, 0.3)
    made = pipeline(WanPipeline, transformer(11, **TRANSFORMER), vae)
    noise = torch.randn(4, 3, 4, 4)
    numpy.save(TARGET / "noise.npy", noise.numpy())
    write_folder("t2v", made, ("vae",))
    write_clip("t2v", made, CALL, noise)
    # Another scheduler that folders have.
    made.scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    write_clip("t2v_euler", made, CALL, noise, frames=False)

    pixels = torch.rand(9, 7, 3).repeat_interleave(8, 0).repeat_interleave(8, 1)
    image = Image.fromarray((pixels * 255).byte().numpy())
    image.save(TARGET / "image.png", optimize=True)
    made = pipeline(WanImageToVideoPipeline, transformer(12, **SMALLER | dict(in_channels=12)), vae)
    write_folder("i2v", made, ())
    write_clip("i2v", made, CALL | dict(image=image), noise)

    vae = randomise(AutoencoderKLWan(**VAE_22), 22, 0.3)
    network = transformer(13, **SMALLER)
    made = pipeline(WanPipeline, network, vae, expand_timesteps=True)
    write_folder("ti2v", made, ("vae",))
    noise = torch.randn(4, 3, 2, 2)
    numpy.save(TARGET / "ti2v_noise.npy", noise.numpy())
    write_clip("ti2v_text", made, CALL, noise, frames=False)
    made = pipeline(WanImageToVideoPipeline, network, vae, expand_timesteps=True)
    write_clip("ti2v", made, CALL | dict(image=image), noise)


if __name__ == "__main__":
    main()
