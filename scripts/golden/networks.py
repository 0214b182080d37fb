#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/{moviegen,stdit,decoder}_tiny.safetensors, moviegen_normed and stdit_full: networks that no
library has; the last two with norms of queries and keys, and with modulation by one matrix.

Each is written here a second time, from its description (the head of lib/models/moviegen/moviegen.h, stdit.h
and decoder.h), with PyTorch's plain operations and one sample at a time, in double. A tiny model with
random weights is run on samples of different size; the file holds weights, inputs, outputs, a
fixed cotangent for each output, and the gradient of every parameter summed over the samples.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0
    venv/bin/python scripts/golden/networks.py
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"


class Weights:
    """Random weights by name, made when they are first asked for."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.values = {}

    def __call__(self, name, *shape, around=0.0):
        if name not in self.values:
            value = torch.randn(*shape, generator=self.generator).mul_(0.2).add_(around)
            self.values[name] = value.double().requires_grad_()
        assert self.values[name].shape == shape, (name, shape)
        return self.values[name]

    def noise(self, *shape):
        return torch.randn(*shape, generator=self.generator)


def layer_norm(x, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()


def rms_norm(x, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def wave(number, width):
    half = width // 2
    angles = number * torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float64) / half)
    return torch.cat([angles.cos(), angles.sin()])


def patches(latent, mask_channel):
    """(C, T, H, W) to (T, H/2, W/2, (C + 1) 4): channel slowest."""
    channels, frames, height, width = latent.shape
    if mask_channel:
        latent = torch.cat([latent, torch.zeros(1, frames, height, width, dtype=latent.dtype)])
    cut = latent.reshape(-1, frames, height // 2, 2, width // 2, 2)
    return cut.permute(1, 2, 4, 0, 3, 5).reshape(frames, height // 2, width // 2, -1)


def unpatched(tokens, channels):
    """(T, h, w, 4 C), channel fastest, to (C, T, 2 h, 2 w)."""
    frames, height, width, _ = tokens.shape
    cut = tokens.reshape(frames, height, width, 2, 2, channels)
    return cut.permute(5, 0, 1, 3, 2, 4).reshape(channels, frames, 2 * height, 2 * width)


def attention(q, k, v, causal=False):
    """(N, H, K), (M, G, K): key head g serves H / G query heads."""
    heads = q.shape[1]
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = torch.einsum("nhk,mhk->hnm", q, k) / math.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[1:]
        later = torch.arange(m)[None] > torch.arange(n)[:, None] + m - n
        scores = scores.masked_fill(later, -math.inf)
    return torch.einsum("hnm,mhk->nhk", scores.softmax(-1), v).reshape(q.shape[0], -1)


def rotate(x, angles):
    """(N, H, K) by (N, K / 2): the halves of a head are the pairs."""
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def angles_of(sizes, head_dim, frequencies, steps):
    """(N, K / 2) of a grid: time, then height, then width."""
    axes = torch.meshgrid(*[torch.arange(n, dtype=torch.float64) for n in sizes], indexing="ij")
    return torch.cat([(axis.reshape(-1, 1) * step) * frequency
                      for axis, step, frequency in zip(axes, steps, frequencies)], -1)


def axis_dims(head_dim):
    space = head_dim // 6 * 2
    return head_dim - 2 * space, space, space


def frequencies(dim, theta):
    return theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


# --- MovieGen-Llama

MOVIEGEN = dict(in_channels=3, out_channels=2, num_attention_heads=4, attention_head_dim=4,
                num_key_value_heads=2, num_layers=2, mlp_ratio=1.5, text_embed_dim=6,
                max_size=(4, 8, 8), patch_size=(1, 2, 2), concat_padding_mask=True, qk_norm=False)


def moviegen(w, c, latent, text, c_noise, fps):
    heads, k, groups = c["num_attention_heads"], c["attention_head_dim"], c["num_key_value_heads"]

    def normed(x, name):
        return rms_norm(x, 1e-5) * w(name + ".weight", k, around=1.0) if c["qk_norm"] else x

    d, hidden = heads * k, int(round(c["mlp_ratio"] * heads * k))
    x = patches(latent, True)
    t, h, wd, size = x.shape
    x = x.reshape(-1, size) @ w("patch_embed.proj.weight", d, size).T
    tables = [w(f"learnable_pos_embed.pos_emb_{a}", n // p, d)
              for a, n, p in zip("thw", c["max_size"], c["patch_size"])]
    positions = (tables[0][:t, None, None] + tables[1][None, :h, None] + tables[2][None, None, :wd]
                 ).reshape(-1, d)
    time = torch.zeros(d, dtype=torch.float64)
    for name, number in ("time_embed", c_noise), ("fps_embed", fps):
        time = time + w(name + ".linear_2.weight", d, d) @ F.silu(
            w(name + ".linear_1.weight", d, d) @ wave(number, d))
    e = F.silu(time)

    def modulated(x, name, parts):
        out = (w(name, parts * d, d) @ e).chunk(parts)
        return rms_norm(x, 1e-5) * (1 + out[1]) + out[0], out[-1]

    for i in range(c["num_layers"]):
        n = f"transformer_blocks.{i}."
        x = x + positions
        y, gate = modulated(x, n + "norm1.linear.weight", 3)
        q = (y @ w(n + "attn1.to_q.weight", d, d).T).reshape(-1, heads, k)
        key = (y @ w(n + "attn1.to_k.weight", groups * k, d).T).reshape(-1, groups, k)
        value = (y @ w(n + "attn1.to_v.weight", groups * k, d).T).reshape(-1, groups, k)
        q, key = normed(q, n + "attn1.norm_q"), normed(key, n + "attn1.norm_k")
        x = x + gate * (attention(q, key, value) @ w(n + "attn1.to_out.weight", d, d).T)
        q = (x @ w(n + "attn2.to_q.weight", d, d).T).reshape(-1, heads, k)
        key = (text @ w(n + "attn2.to_k.weight", groups * k, text.shape[1]).T)
        value = (text @ w(n + "attn2.to_v.weight", groups * k, text.shape[1]).T)
        key, value = key.reshape(-1, groups, k), value.reshape(-1, groups, k)
        q, key = normed(q, n + "attn2.norm_q"), normed(key, n + "attn2.norm_k")
        x = x + attention(q, key, value) @ w(n + "attn2.to_out.weight", d, d).T
        y, gate = modulated(x, n + "norm2.linear.weight", 3)
        up = F.silu(y @ w(n + "ff.gate_proj.weight", hidden, d).T) * (
            y @ w(n + "ff.up_proj.weight", hidden, d).T)
        x = x + gate * (up @ w(n + "ff.down_proj.weight", d, hidden).T)
    y, _ = modulated(x, "norm_out.linear.weight", 2)
    y = y @ w("proj_out.weight", 4 * c["out_channels"], d).T
    return unpatched(y.reshape(t, h, wd, -1), c["out_channels"])


# --- ST-DiT

STDIT = dict(in_channels=2, out_channels=2, num_attention_heads=2, attention_head_dim=12, num_layers=1,
             mlp_ratio=2.0, text_embed_dim=6, adaln_lora_dim=4, max_size=(4, 8, 8),
             patch_size=(1, 2, 2), rope_scale=(2.0, 1.0, 3.0), concat_padding_mask=False,
             extra_pos_embed_type="learnable")


def stdit(w, c, latent, text, c_noise, fps):
    heads, k, low = c["num_attention_heads"], c["attention_head_dim"], c["adaln_lora_dim"]
    d, hidden = heads * k, int(c["mlp_ratio"] * heads * k)
    x = patches(latent, False)
    t, h, wd, size = x.shape
    x = x.reshape(-1, size) @ w("patch_embed.proj.weight", d, size).T
    tables = [w(f"learnable_pos_embed.pos_emb_{a}", n // p, d)
              for a, n, p in zip("thw", c["max_size"], c["patch_size"])]
    positions = (tables[0][:t, None, None] + tables[1][None, :h, None] + tables[2][None, None, :wd]
                 ).reshape(-1, d)
    positions = positions / (1e-6 + positions.square().mean(-1, keepdim=True).sqrt())
    sinusoid = wave(c_noise, d)
    shared = w("time_embed.t_embedder.linear_2.weight", 3 * d, d) @ F.silu(
        w("time_embed.t_embedder.linear_1.weight", d, d) @ sinusoid)
    e = F.silu(rms_norm(sinusoid, 1e-6) * w("time_embed.norm.weight", d, around=1.0))
    dims = axis_dims(k)
    rates = [frequencies(n, 10000 * s ** (n / (n - 2))) for n, s in zip(dims, c["rope_scale"])]
    angles = angles_of((t, h, wd), k, rates, (24 / fps if fps else 1, 1, 1))

    def modulated(x, name, parts=3):
        inside = w(name + ".linear_1.weight", low, d) @ e if low else e
        out = w(name + ".linear_2.weight", parts * d, low or d) @ inside + shared[:parts * d]
        out = out.chunk(parts)
        return layer_norm(x, 1e-6) * (1 + out[1]) + out[0], out[-1]

    def normed(x, name):
        return rms_norm(x.reshape(-1, heads, k), 1e-5) * w(name, k, around=1.0)

    def see(x, norm, name, groups):
        """Attention of the tokens with equal numbers in `groups` among each other."""
        y, gate = modulated(x, norm)
        q = rotate(normed(y @ w(name + ".to_q.weight", d, d).T, name + ".norm_q.weight"), angles)
        key = rotate(normed(y @ w(name + ".to_k.weight", d, d).T, name + ".norm_k.weight"), angles)
        value = (y @ w(name + ".to_v.weight", d, d).T).reshape(-1, heads, k)
        out = torch.zeros_like(x)
        for group in groups.unique():
            who = (groups == group).nonzero()[:, 0]
            out = out.index_put((who,), attention(q[who], key[who], value[who]))
        return x + gate * (out @ w(name + ".to_out.0.weight", d, d).T)

    frame = torch.arange(t)[:, None].expand(t, h * wd).reshape(-1)
    pixel = torch.arange(h * wd)[None].expand(t, h * wd).reshape(-1)
    for i in range(c["num_layers"]):
        n = f"transformer_blocks.{i}."
        x = x + positions
        x = see(x, n + "norm_spatial", n + "attn_spatial", frame)
        x = see(x, n + "norm1", n + "attn1", torch.zeros_like(frame))
        y, gate = modulated(x, n + "norm2")
        q = normed(y @ w(n + "attn2.to_q.weight", d, d).T, n + "attn2.norm_q.weight")
        key = normed(text @ w(n + "attn2.to_k.weight", d, text.shape[1]).T, n + "attn2.norm_k.weight")
        value = (text @ w(n + "attn2.to_v.weight", d, text.shape[1]).T).reshape(-1, heads, k)
        x = x + gate * (attention(q, key, value) @ w(n + "attn2.to_out.0.weight", d, d).T)
        x = see(x, n + "norm_temporal", n + "attn_temporal", pixel)
        y, gate = modulated(x, n + "norm3")
        up = F.gelu(y @ w(n + "ff.net.0.proj.weight", hidden, d).T)
        x = x + gate * (up @ w(n + "ff.net.2.weight", d, hidden).T)
    y, _ = modulated(x, "norm_out", 2)
    y = y @ w("proj_out.weight", 4 * c["out_channels"], d).T
    return unpatched(y.reshape(t, h, wd, -1), c["out_channels"])


# --- the autoregressive decoder

DECODER = dict(vocabulary=11, num_attention_heads=4, attention_head_dim=12, num_key_value_heads=2,
               num_layers=1, mlp_ratio=0.5, text_embed_dim=6, rope_theta=500000.0, yarn_scale=2.0,
               yarn_frames=3, yarn_betas=(4.0, 0.05))
CODES = [dict(size=(3, 2, 3), text=3), dict(size=(1, 3, 2), text=1), dict(size=(2, 1, 1), text=2)]


def decoder(w, c, codes, sizes, text):
    heads, k, groups = c["num_attention_heads"], c["attention_head_dim"], c["num_key_value_heads"]
    d, hidden, v = heads * k, int(round(c["mlp_ratio"] * heads * k)), c["vocabulary"]
    dims = axis_dims(k)
    rates = [frequencies(n, c["rope_theta"]) for n in dims]
    rotations = c["yarn_frames"] * rates[0] / (2 * math.pi)
    fast, slow = c["yarn_betas"]
    kept = ((rotations - slow) / (fast - slow)).clamp(0, 1)
    rates[0] = rates[0] * kept + rates[0] / c["yarn_scale"] * (1 - kept)
    angles = angles_of(sizes, k, rates, (1, 1, 1))

    def normed(x, name):
        return rms_norm(x, 1e-5) * w(name, x.shape[-1], around=1.0)

    def heads_of(x, name, n, width):
        return (x @ w(name, n * k, width).T).reshape(-1, n, k)

    x = w("embed_tokens.weight", v + 1, d)[torch.cat([torch.tensor([v]), codes[:-1]])]
    for i in range(c["num_layers"]):
        n = f"layers.{i}."
        y = normed(x, n + "input_layernorm.weight")
        a = n + "self_attn."
        q = rotate(normed(heads_of(y, a + "q_proj.weight", heads, d), a + "q_norm.weight"), angles)
        key = rotate(normed(heads_of(y, a + "k_proj.weight", groups, d), a + "k_norm.weight"), angles)
        value = heads_of(y, a + "v_proj.weight", groups, d)
        x = x + attention(q, key, value, causal=True) @ w(a + "o_proj.weight", d, d).T
        y = normed(x, n + "cross_attn_layernorm.weight")
        a = n + "cross_attn."
        q = normed(heads_of(y, a + "q_proj.weight", heads, d), a + "q_norm.weight")
        key = normed(heads_of(text, a + "k_proj.weight", groups, text.shape[1]), a + "k_norm.weight")
        value = heads_of(text, a + "v_proj.weight", groups, text.shape[1])
        x = x + attention(q, key, value) @ w(a + "o_proj.weight", d, d).T
        y = normed(x, n + "post_attention_layernorm.weight")
        up = F.silu(y @ w(n + "mlp.gate_proj.weight", hidden, d).T) * (
            y @ w(n + "mlp.up_proj.weight", hidden, d).T)
        x = x + up @ w(n + "mlp.down_proj.weight", d, hidden).T
    return normed(x, "norm.weight") @ w("lm_head.weight", v, d).T


def code_losses(logits, codes, z_loss):
    lse = logits.logsumexp(-1)
    return lse - logits.gather(-1, codes[:, None])[:, 0] + z_loss * lse.square()


def autoregressive(seed):
    weights, tensors, z_loss = Weights(seed), {}, 0.01
    for i, sample in enumerate(CODES):
        codes = torch.randint(DECODER["vocabulary"], (math.prod(sample["size"]),),
                              generator=weights.generator)
        text = weights.noise(sample["text"], DECODER["text_embed_dim"])
        logits = decoder(weights, DECODER, codes, sample["size"], text.double())
        losses = code_losses(logits, codes, z_loss)
        losses.sum().backward()
        tensors |= {f"input.{i}.codes": codes.to(torch.int32), f"input.{i}.text": text,
                    f"output.{i}": logits, f"losses.{i}": losses}
    write("decoder_tiny", weights, tensors,
          {"config": DECODER, "samples": CODES, "z_loss": z_loss})


def write(name, weights, tensors, metadata):
    for key, value in weights.values.items():
        tensors["weight." + key] = value.detach()
        tensors["gradient." + key] = value.grad
    tensors = {key: value.detach().float().contiguous() if value.is_floating_point() else value
               for key, value in tensors.items()}
    path = GOLDEN / f"{name}.safetensors"
    save_file(tensors, path, metadata={key: json.dumps(value) for key, value in metadata.items()}
              | {"torch": torch.__version__})
    print(path, path.stat().st_size)


SAMPLES = [dict(size=(3, 4, 8), fps=12, c_noise=0.31, text=4),
           dict(size=(1, 6, 4), fps=0, c_noise=-0.47, text=1),
           dict(size=(2, 2, 4), fps=30, c_noise=0.9, text=2)]


def diffusion(name, network, config, seed):
    weights, tensors = Weights(seed), {}
    for i, sample in enumerate(SAMPLES):
        latent = weights.noise(config["in_channels"], *sample["size"])
        text = weights.noise(sample["text"], config["text_embed_dim"])
        output = network(weights, config, latent.double(), text.double(), sample["c_noise"],
                         sample["fps"])
        cotangent = weights.noise(*output.shape)
        output.backward(cotangent.double())
        tensors |= {f"input.{i}.latent": latent, f"input.{i}.text": text, f"output.{i}": output,
                    f"cotangent.{i}": cotangent}
    write(name, weights, tensors, {"config": config, "samples": SAMPLES})


def main():
    torch.set_num_threads(1)
    diffusion("moviegen_tiny", moviegen, MOVIEGEN, 11)
    diffusion("moviegen_normed", moviegen, MOVIEGEN | {"qk_norm": True}, 14)
    diffusion("stdit_tiny", stdit, STDIT, 12)
    diffusion("stdit_full", stdit, STDIT | {"adaln_lora_dim": None}, 15)
    autoregressive(13)


if __name__ == "__main__":
    main()
