#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""T5's encoder in transformers: what t5.cc times, and the folder that both read.

    t5_torch.py make DIR base|large|v1_1-base f32|bf16    writes a model with random weights
    t5_torch.py time DIR f32|bf16 ROUNDS LENGTH...        prints a line like t5.cc's
"""
import resource
import sys
import time

SHAPES = {"base": dict(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, feed_forward_proj="relu"),
          "large": dict(d_model=1024, d_kv=64, d_ff=4096, num_layers=24, num_heads=16, feed_forward_proj="relu"),
          "v1_1-base": dict(d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_heads=12,
                            feed_forward_proj="gated-gelu")}


def make(folder, shape, dtype):
    import torch
    from transformers import T5Config, T5EncoderModel
    torch.manual_seed(1)
    model = T5EncoderModel(T5Config(vocab_size=32128, **SHAPES[shape]))
    model.to(torch.bfloat16 if dtype == "bf16" else torch.float32).save_pretrained(folder)


def measure(folder, dtype, rounds, lengths):
    start = time.perf_counter()
    import torch
    from transformers import T5EncoderModel
    imported = time.perf_counter()
    model = T5EncoderModel.from_pretrained(folder, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32).eval()
    longest = max(lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.long)
    for row, n in zip(ids, lengths):
        row[:n] = 3 + (torch.arange(n) * 7919) % (32128 - 3)
    mask = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    times = []
    with torch.inference_mode():
        for i in range(rounds + 1):
            begin = time.perf_counter()
            model(input_ids=ids, attention_mask=mask.long())
            if i == 0:
                first = time.perf_counter() - imported
            else:
                times.append(time.perf_counter() - begin)
    times.sort()
    median = times[len(times) // 2]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"torch {dtype} tokens {sum(lengths)} first {1e3 * first:.0f} ms best {1e3 * times[0]:.1f} ms "
          f"median {1e3 * median:.1f} ms peak {peak} MiB tokens/s {sum(lengths) / median:.0f}")


if sys.argv[1] == "make":
    make(*sys.argv[2:5])
else:
    measure(sys.argv[2], sys.argv[3], int(sys.argv[4]), [int(n) for n in sys.argv[5:]])
