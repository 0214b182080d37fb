#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/cosmos_pipeline/ from diffusers' CosmosTextToWorldPipeline, and
tests/golden/cosmos_v2w/ from its CosmosVideoToWorldPipeline, which goes on from the first one's clip.

Whole pipelines, from prompt to frames, with tiny random transformers; their tokenizer of video and their text
encoder are those of tests/golden/cosmos_vae and tests/golden/t5/v1_0, which cosmos_tokenizer.py and t5.py
wrote. Kept are the parts that are nowhere else (model_index.json, transformer/, scheduler/), the first noise
and the 8-bit frames of one clip: tests/pipeline/cosmos_folder.bats puts the folders together again. Given
frames get no noise of their own, which would have to be kept too.
The safety checker is a stand-in that lets all pass.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 \
        safetensors==0.8.0
    venv/bin/python scripts/golden/cosmos_pipeline.py
"""
import pathlib
import shutil
import tempfile

import numpy
import torch
from diffusers import (AutoencoderKLCosmos, CosmosTextToWorldPipeline, CosmosTransformer3DModel,
                       CosmosVideoToWorldPipeline, EDMEulerScheduler)
from PIL import Image
from transformers import PreTrainedTokenizerFast, T5EncoderModel

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
TRANSFORMER = dict(in_channels=3, out_channels=3, num_attention_heads=2, attention_head_dim=16, num_layers=2,
                   mlp_ratio=2.0, text_embed_dim=16, adaln_lora_dim=8, max_size=(4, 16, 16),
                   patch_size=(1, 2, 2), rope_scale=(2.0, 1.0, 1.0), concat_padding_mask=True,
                   extra_pos_embed_type="learnable")
CALL = dict(prompt="a red fox crosses a snowy road", negative_prompt="blurry", height=32, width=48,
            num_frames=5, num_inference_steps=5, guidance_scale=3.0, fps=30, max_sequence_length=512)
LATENT = (3, 2, 8, 12)
VIDEO_TRANSFORMER = TRANSFORMER | dict(in_channels=4, num_attention_heads=1, attention_head_dim=12,
                                       num_layers=1, adaln_lora_dim=4)
VIDEO_CALL = CALL | dict(num_frames=9, augment_sigma=0.0)
VIDEO_LATENT = (3, 3, 8, 12)


class LetsAllPass:
    device, dtype = torch.device("cpu"), torch.float32

    def to(self, *_, **__):
        return self

    def check_text_safety(self, _):
        return True

    def check_video_safety(self, video):
        return video


def random_transformer(seed: int, **config) -> CosmosTransformer3DModel:
    torch.manual_seed(seed)
    transformer = CosmosTransformer3DModel(**config)
    with torch.no_grad():
        for name, parameter in transformer.named_parameters():
            parameter.normal_(0, 0.2)
            if "norm" in name and parameter.ndim == 1:
                parameter.add_(1)
    return transformer


def make_pipeline(kind: type, transformer: CosmosTransformer3DModel):
    text = GOLDEN / "t5/v1_0"
    # The stand-in is no module, and this property looks at modules only.
    kind._execution_device = property(lambda _: torch.device("cpu"))
    return kind(
        text_encoder=T5EncoderModel.from_pretrained(text / "text_encoder", dtype=torch.float32),
        tokenizer=PreTrainedTokenizerFast(tokenizer_file=str(text / "tokenizer/tokenizer.json"),
                                          eos_token="</s>", pad_token="<pad>", unk_token="<unk>"),
        transformer=transformer, vae=AutoencoderKLCosmos.from_pretrained(GOLDEN / "cosmos_vae"),
        scheduler=EDMEulerScheduler(sigma_min=0.002, sigma_max=80.0, sigma_data=0.5, sigma_schedule="karras",
                                    prediction_type="epsilon", rho=7.0, final_sigmas_type="sigma_min"),
        safety_checker=LetsAllPass())


def to_bytes(frames) -> numpy.ndarray:
    return numpy.rint(numpy.asarray(frames) * 255).astype(numpy.uint8)


def write(target: pathlib.Path, pipeline, noise: torch.Tensor, frames: numpy.ndarray) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    pipeline.register_modules(safety_checker=None)
    with tempfile.TemporaryDirectory() as whole:
        pipeline.save_pretrained(whole)
        for part in ("model_index.json", "transformer", "scheduler"):
            shutil.move(pathlib.Path(whole) / part, target / part)
    numpy.save(target / "noise.npy", noise.numpy())
    (target / "frames.rgb").write_bytes(frames.tobytes())
    print(target.name, frames.shape, frames.mean(), frames.std())


def main() -> None:
    torch.set_num_threads(1)
    pipeline = make_pipeline(CosmosTextToWorldPipeline, random_transformer(11, **TRANSFORMER))
    noise = torch.randn(LATENT)
    frames = to_bytes(pipeline(**CALL, latents=noise[None].clone(), output_type="np").frames[0])
    write(GOLDEN / "cosmos_pipeline", pipeline, noise, frames)

    pipeline = make_pipeline(CosmosVideoToWorldPipeline, random_transformer(12, **VIDEO_TRANSFORMER))
    noise = torch.randn(VIDEO_LATENT)
    frames = to_bytes(pipeline(**VIDEO_CALL, video=[Image.fromarray(frame) for frame in frames],
                               latents=noise[None].clone(), output_type="np").frames[0])
    write(GOLDEN / "cosmos_v2w", pipeline, noise, frames)


if __name__ == "__main__":
    main()
