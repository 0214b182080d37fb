#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vfm-train export writes, opened by diffusers and peft, gives what vfm-generate gives.

    python3 export.py ROUND_TRIP COSMOS

ROUND_TRIP is a folder that tests/pipeline/round-trip filled: of its run and its adapters the exports give the
latents that vfm-generate made, merged, as adapters of diffusers, and as a PeftModel. COSMOS is a run that
began from a Cosmos pipeline (tests/pipeline/cosmos_folder.bats): its export is opened as a pipeline, which
makes the latents of vfm-generate from the noise COSMOS/noise.npy. Nothing is recorded; what differs fails. On
2026-11-22 the largest difference was 3e-7 of the largest value, of the pipeline 1.1e-6.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        peft==0.21.2 transformers==5.23.0 sentencepiece
    PATH=build/tools:$PATH venv/bin/python scripts/golden/export.py ROUND_TRIP COSMOS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from diffusers import CosmosTextToWorldPipeline, CosmosTransformer3DModel
from peft import PeftModel
from safetensors.numpy import load_file

from cosmos_pipeline import LetsAllPass
from round_trip import compare

PROMPT = "a red fox crosses a snowy road"


def export(source: pathlib.Path, target: pathlib.Path, *options: str) -> pathlib.Path:
    subprocess.run(["vfm-train", "export", source, "-o", target, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return target


def networks(made: pathlib.Path, folder: pathlib.Path) -> None:
    train = json.loads(next(made.glob("run/checkpoints/step-*/train.json")).read_text())

    def load(path: pathlib.Path) -> CosmosTransformer3DModel:
        network, info = CosmosTransformer3DModel.from_pretrained(path, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        return network.eval()

    # round-trip samples with the weights of the last step; adapters are of the averaged base.
    last = ("--no-ema",)
    plain = export(made / "run", folder / "plain")
    separate = export(made / "adapters", folder / "separate", "--no-merge", *last)
    raw = load(export(made / "run", folder / "raw", *last))
    assert compare(made, "run", raw, train)["difference"] < 1e-5
    merged = load(export(made / "adapters", folder / "merged", *last))
    assert compare(made, "adapters", merged, train)["difference"] < 1e-5
    adapted = load(plain)
    adapted.load_lora_adapter(separate, weight_name="pytorch_lora_weights.safetensors")
    assert compare(made, "adapters", adapted, train)["difference"] < 1e-5
    peft = PeftModel.from_pretrained(load(plain), str(separate))
    assert compare(made, "adapters", peft, train)["difference"] < 1e-5
    of_checkpoint = next(made.glob("adapters/checkpoints/step-*")) / "lora"
    peft = PeftModel.from_pretrained(load(plain), str(of_checkpoint))
    lora = load_file(of_checkpoint / "adapter_model.safetensors")
    state = {n.replace(".default.", "."): t for n, t in peft.state_dict().items() if "lora_" in n}
    assert set(state) == set(lora) and all(np.array_equal(state[n].numpy(), lora[n]) for n in lora)


def pipeline(run: pathlib.Path, folder: pathlib.Path) -> None:
    CosmosTextToWorldPipeline._execution_device = property(lambda _: torch.device("cpu"))
    pipe = CosmosTextToWorldPipeline.from_pretrained(export(run, folder / "pipeline"),
                                                     safety_checker=LetsAllPass(), torch_dtype=torch.float32)
    noise = np.load(run / "noise.npy")
    latents = pipe(prompt=PROMPT, negative_prompt="blurry", height=32, width=48, num_frames=5,
                   num_inference_steps=5, guidance_scale=3.0, fps=30, max_sequence_length=512,
                   latents=torch.from_numpy(noise)[None].clone(), output_type="latent").frames
    subprocess.run(["vfm-generate", "--model", run, "--negative", "blurry", "--size", "48x32", "--frames", "5",
                    "--fps", "30", "--steps", "5", "--guidance", "3", "--device", "cpu", "--latents-only", "-o",
                    folder / "latents"], check=True, stdout=subprocess.DEVNULL, text=True,
                   input=json.dumps({"prompt": PROMPT, "noise": str(run / "noise.npy")}))
    ours = load_file(next(folder.glob("latents/*.latents.safetensors")))["latent"]
    config = pipe.vae.config
    mean, std = (torch.tensor(config[key]).view(1, config.latent_channels, -1, 1, 1)[:, :, :latents.size(2)]
                 for key in ("latents_mean", "latents_std"))
    theirs = (latents * std / pipe.scheduler.config.sigma_data + mean)[0].numpy()
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    print(f"pipeline: largest difference {difference:.2e} of the largest value")
    assert difference < 1e-4


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        networks(pathlib.Path(sys.argv[1]), pathlib.Path(folder))
        pipeline(pathlib.Path(sys.argv[2]), pathlib.Path(folder))


if __name__ == "__main__":
    main()
