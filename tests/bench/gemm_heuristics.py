#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's nvMatmulHeuristics predicts for the matrix products of a training step, as Markdown. Needs no GPU.

    python3 -m venv venv && venv/bin/pip install nvidia-matmul-heuristics==0.1.0.27
    venv/bin/python tests/bench/gemm_heuristics.py [RECIPE...]      (default: 2b 7b 14b 28b moviegen-30b)

Asked is its model of a kernel's time, of the fastest of all kernels that it proposes, as vfm times those that cuBLASLt
proposes; for its backend "generic", since cuBLASLt is none of its backends. The products are those of
lib/models/dit/dit_block.cc and moviegen.cc, on one pack of the recipe's tokens with 512 tokens of text and nothing
recomputed. Their sum is what vfm-train cost counts with model.recompute=none.
"""
import pathlib
import re
import sys
from collections import Counter

from nvMatmulHeuristics import (NvMatmulHeuristicsFlags, NvMatmulHeuristicsInterfaceEx, NvMatmulHeuristicsMatmulLayout,
                                NvMatmulHeuristicsNvidiaGpu, NvMatmulHeuristicsTarget)

GPUS = {"H100": NvMatmulHeuristicsNvidiaGpu.H100_SXM, "H200": NvMatmulHeuristicsNvidiaGpu.H200_SXM,
        "B200": NvMatmulHeuristicsNvidiaGpu.B200}
TEXT, TEXT_WIDTH, CHANNELS, PATCH = 512, 1024, 16, 4
CANDIDATES = 64
# Row by row: A is [m, k], B [k, n]; T: it lies transposed in memory. Types of A and B, sums, result.
FORWARD, DGRAD, WGRAD, FP8 = ("NT", "TST"), ("NN", "TST"), ("TN", "TSS"), ("NT", "QQTST")


def fields(recipe):
    """The recipe's numbers and words, without sections: names that are asked for stand once in a recipe."""
    text = pathlib.Path(recipe).read_text()
    return dict(re.findall(r"(?m)^  (\w+): ([^\s#]+)", text))


def products(recipe):
    """{(m, n, k, layout, types): how often in a step of one pack}"""
    f = fields(recipe)
    moviegen = f.get("type") == "moviegen"
    head = int(f["attention_head_dim"])
    width, tokens = int(f["num_attention_heads"]) * head, int(f["tokens"])
    keys = int(f.get("num_key_value_heads", f["num_attention_heads"])) * head
    hidden = round(float(f.get("mlp_ratio", 4)) * width)
    # What goes in, what comes out, rows, whether what goes in has a gradient.
    layer = [(width, width + 2 * keys, tokens, True), (width, width, tokens, True), (width, width, tokens, True),
             (TEXT_WIDTH, 2 * keys, TEXT, False), (width, width, tokens, True),
             (width, (2 if moviegen else 1) * hidden, tokens, True), (hidden, width, tokens, True)]
    ends = [((CHANNELS + (not moviegen)) * PATCH, width, tokens, False), (width, CHANNELS * PATCH, tokens, True)]
    found = Counter()
    for times, (into, out, rows, gradient) in [(int(f["num_layers"]), x) for x in layer] + [(1, x) for x in ends]:
        found[rows, out, into, *FORWARD] += times
        found[out, into, rows, *WGRAD] += times
        if gradient:
            found[rows, into, out, *DGRAD] += times
    return found


def flops(m, n, k):
    return 2 * m * n * k


class Oracle:
    def __init__(self, gpu):
        self.gpu, self.known = gpu, {}

    def seconds(self, product):
        if product not in self.known:
            m, n, k, layout, types = product
            asked = NvMatmulHeuristicsInterfaceEx(backend=NvMatmulHeuristicsTarget.GENERIC, gpu=self.gpu,
                                                  flags=NvMatmulHeuristicsFlags.PERF_MODEL_BASED_AUTO_TUNING)
            how = NvMatmulHeuristicsMatmulLayout[f"{layout}_ROW_MAJOR"]
            kernels = asked.get(asked.makeNvMatmulHeuristicsProblem(m, n, k, how), CANDIDATES, precision=types)
            times = [kernel["runtime"] for kernel in kernels]
            if not times or min(times) <= 0:
                sys.exit(f"gemm_heuristics: no kernel is proposed for {product} on {self.gpu.name}")
            self.known[product] = min(times)
        return self.known[product]


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples/recipes"
    recipes = sys.argv[1:] or [folder / f"{name}.yaml" for name in ("2b", "7b", "14b", "28b", "moviegen-30b")]
    oracles = {name: Oracle(gpu) for name, gpu in GPUS.items()}

    def rates(product):
        return " | ".join(f"{flops(*product[:3]) / o.seconds(product) / 1e12:.0f}" for o in oracles.values())

    heads = " | ".join(GPUS) + " |"
    rule = "---:|" * len(GPUS)
    print(f"| recipe, one pack | products | TFLOP | ms: {heads} TFLOP/s: {heads}")
    print(f"|---|---:|---:|{rule}{rule}")
    for recipe in recipes:
        all_of = products(recipe)
        total = sum(flops(*p[:3]) * n for p, n in all_of.items())
        seconds = [sum(o.seconds(p) * n for p, n in all_of.items()) for o in oracles.values()]
        print(f"| {pathlib.Path(recipe).stem} | {sum(all_of.values())} | {total / 1e12:.1f} | "
              + " | ".join(f"{1e3 * s:.0f}" for s in seconds) + " | "
              + " | ".join(f"**{total / s / 1e12:.0f}**" for s in seconds) + " |")
    print(f"\n| product, m x n x k | layout | of | {heads}")
    print(f"|---|---|---|{rule}")
    kinds = {FORWARD: "forward", DGRAD: "gradient of the input", WGRAD: "gradient of the weights, f32", FP8: "FP8, forward"}
    rows = products(folder / "7b.yaml")
    rows = [p for p in rows if min(p[:2]) >= 1024] + [(*p[:3], *FP8) for p in rows if p[3:] == FORWARD and p[0] > TEXT
                                                      and min(p[:3]) >= 1024]
    for p in sorted(rows, key=lambda p: (list(kinds).index(p[3:]), p)):
        m, n, k, layout, types = p
        print(f"| {m} x {n} x {k} | {layout} | {kinds[layout, types]} | {rates(p)} |")
    print(f"| 8192 x 8192 x 8192 | NN | for comparison, bf16 | {rates((8192, 8192, 8192, *DGRAD))} |")


if __name__ == "__main__":
    main()
