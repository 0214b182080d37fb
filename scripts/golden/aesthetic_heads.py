#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/aesthetic_heads/: LAION's aesthetic heads, small and with random weights, by PyTorch.

linear.pth, mlp.pth and relu.pth are state_dicts of the modules that were published (aesthetic-predictor;
improved-aesthetic-predictor without and with activations), for vectors of 12 numbers; mlp.safetensors has mlp's in f16.
outputs.safetensors has vectors of length 1 and what each head makes of them in f32.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0
    venv/bin/python scripts/golden/aesthetic_heads.py
"""
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from torch.nn import Dropout, Linear, ReLU, Sequential

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/aesthetic_heads"
WIDTHS = [12, 10, 8, 6, 4, 1]


class Layered(torch.nn.Module):
    """A module whose tensors are called layers.N."""

    def __init__(self, relu: bool):
        super().__init__()
        linear = [Linear(a, b) for a, b in zip(WIDTHS, WIDTHS[1:])]
        parts: list[torch.nn.Module] = []
        for i, layer in enumerate(linear):
            parts += [layer, *([ReLU()] if relu and i < 4 else []), *([Dropout()] if i < 3 else [])]
        self.layers = Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    vectors = torch.nn.functional.normalize(torch.randn(5, WIDTHS[0]), dim=1)
    outputs = {"vectors": vectors}
    for name, head in {"linear": Linear(WIDTHS[0], 1), "mlp": Layered(False), "relu": Layered(True)}.items():
        head.eval()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.normal_(0.1, 0.6)
            torch.save(head.state_dict(), GOLDEN / f"{name}.pth")
            outputs[name] = head(vectors)[:, 0].contiguous()
            if name == "mlp":
                halves = {key: value.half() for key, value in head.state_dict().items()}
                save_file(halves, GOLDEN / "mlp.safetensors")
                head.load_state_dict({key: value.float() for key, value in halves.items()})
                outputs["mlp_f16"] = head(vectors)[:, 0].contiguous()
        print(name, list(head.state_dict()), outputs[name])
    save_file(outputs, GOLDEN / "outputs.safetensors", metadata={"torch": torch.__version__})
    for file in GOLDEN.iterdir():
        file.chmod(0o644)
    print(sum(file.stat().st_size for file in GOLDEN.iterdir()), "bytes")


main()
