#!/usr/bin/env python3
# Writes a GGUF file of a Wan 2.1 of 1.3B's shape: random weights, the matrices in Q8_0. Needs gguf.
# Usage: wan_gguf.py FILE
# SPDX-License-Identifier: Apache-2.0
import sys

import gguf
import numpy as np

WIDTH, HIDDEN, LAYERS = 1536, 8960, 30
Q8 = gguf.GGMLQuantizationType.Q8_0
random = np.random.default_rng(0)
writer = gguf.GGUFWriter(sys.argv[1], "wan")


def plain(name: str, shape: tuple, scale: float, mean: float = 0) -> None:
    writer.add_tensor(name, (mean + scale * random.standard_normal(shape)).astype(np.float32))


def linear(name: str, outputs: int, inputs: int) -> None:
    blocks = np.empty((outputs, inputs // 32, 34), np.uint8)
    blocks[..., :2] = np.array([inputs**-0.5 / 73], np.float16).view(np.uint8)  # the codes deviate by 73
    blocks[..., 2:] = random.integers(-127, 128, (outputs, inputs // 32, 32), np.int8).view(np.uint8)
    writer.add_tensor(name + ".weight", blocks.reshape(outputs, -1), raw_dtype=Q8)
    plain(name + ".bias", (outputs,), 0.02)


plain("patch_embedding.weight", (WIDTH, 16, 1, 2, 2), 0.125)
plain("patch_embedding.bias", (WIDTH,), 0.02)
linear("text_embedding.0", WIDTH, 4096)
linear("text_embedding.2", WIDTH, WIDTH)
linear("time_embedding.0", WIDTH, 256)
linear("time_embedding.2", WIDTH, WIDTH)
linear("time_projection.1", 6 * WIDTH, WIDTH)
for i in range(LAYERS):
    block = f"blocks.{i}."
    plain(block + "modulation", (1, 6, WIDTH), 0.1)
    for attention in ("self_attn.", "cross_attn."):
        for matrix in "qkvo":
            linear(block + attention + matrix, WIDTH, WIDTH)
        for norm in ("norm_q.weight", "norm_k.weight"):
            plain(block + attention + norm, (WIDTH,), 0.1, 1)
    plain(block + "norm3.weight", (WIDTH,), 0.1, 1)
    plain(block + "norm3.bias", (WIDTH,), 0.02)
    linear(block + "ffn.0", HIDDEN, WIDTH)
    linear(block + "ffn.2", WIDTH, HIDDEN)
plain("head.modulation", (1, 2, WIDTH), 0.1)
linear("head.head", 64, WIDTH)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
