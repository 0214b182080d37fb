#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/torch/: checkpoints of PyTorch, good and bad, for the reader that runs no code.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0
    venv/bin/python scripts/golden/torch_zip.py
"""
import os
import pathlib
import warnings
from collections import OrderedDict

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/torch"


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/vfm-code-was-run",)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Conv3d(1, 2, (1, 3, 3)))
        self.register_buffer("steps", torch.arange(4))
        self.sizes = [1, 2, 3]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down[0](x) * self.sizes[1]


def tensors() -> OrderedDict:
    whole = torch.arange(24, dtype=torch.float32) / 8
    state = OrderedDict()
    state["f32"] = whole.reshape(2, 3, 4)
    state["shared"] = whole[6:18].reshape(3, 4)
    state["transposed"] = whole.reshape(4, 6).t()
    state["every_second"] = whole[1::2]
    state["channels_last"] = torch.arange(48.).reshape(2, 3, 2, 4).to(memory_format=torch.channels_last)
    state["parameter"] = torch.nn.Parameter(torch.tensor([0.5, -0.5]))
    state["scalar"] = torch.tensor(3.25)
    state["empty"] = torch.zeros(0, 5)
    state["a.bf16"] = torch.tensor([1.5, -2.0, 3e38], dtype=torch.bfloat16)
    state["a.f16"] = torch.tensor([[1.5], [-65504.0]], dtype=torch.float16)
    state["f64"] = torch.tensor([1 / 3], dtype=torch.float64)
    for name in "int8", "int16", "int32", "int64", "uint8":
        state[name] = torch.tensor([0, 1, 127], dtype=getattr(torch, name))
    state["bool"] = torch.tensor([True, False])
    return state


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    FOLDER.mkdir(exist_ok=True)
    os.chdir(FOLDER)
    state = tensors()
    torch.save(state, "state_dict.pt")
    save_file({name: t.detach().clone().contiguous() for name, t in state.items()},
              "state_dict.safetensors")
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save({"epoch": 3, "loss": 0.25, "big": 1 << 80, "negative": -5, "tags": ("a", None, 1.5),
                "model": net.state_dict(), "optimizer": optimizer.state_dict()}, "training.pt")
    torch.jit.save(torch.jit.script(net), "scripted.jit")
    save_file({name: t.detach().contiguous() for name, t in net.state_dict().items()},
              "net.safetensors")
    torch.save([torch.ones(2), {"x": [torch.zeros(1)]}], "list.pt")
    torch.save({"evil": Evil(), "x": torch.ones(1)}, "evil.pt")
    torch.save(net, "module.pt")
    torch.save({"x": torch.ones(1).expand(1000)}, "expanded.pt")
    torch.save({"x": torch.ones(1)}, "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"x": torch.ones(1)}, "protocol4.pt", pickle_protocol=4)
    torch.save({"epoch": 3}, "empty.pt")
    print({file.name: file.stat().st_size for file in sorted(FOLDER.iterdir())})


if __name__ == "__main__":
    main()
