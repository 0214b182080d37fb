#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-VL and SmolVLM in transformers: what caption_speed.cc times, and the folders that both read.

    caption_speed_torch.py make DIR f32|bf16                   writes a Qwen2.5-VL of 0.3 billion random weights
    caption_speed_torch.py make-smol DIR f32|bf16              writes a SmolVLM of 0.15 billion
    caption_speed_torch.py gguf DIR GGUF_DIR                   writes the same model as llama.cpp's files, Q8_0
    caption_speed_torch.py time DIR f32|bf16 ROUNDS TOKENS wall|processor      prints lines like caption_speed.cc's
"""
import resource
import sys
import time

WORDS, TOGETHER, VIDEO = 32, 8, 16002


def dtype_of(name):
    import torch
    return torch.bfloat16 if name == "bf16" else torch.float32


def make(folder, dtype):
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    torch.manual_seed(1)
    config = Qwen2_5_VLConfig(
        text_config=dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=8,
                         num_key_value_heads=2, vocab_size=16384, rms_norm_eps=1e-6, max_position_embeddings=32768,
                         rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[16, 24, 24]),
                         eos_token_id=2, bos_token_id=1),
        vision_config=dict(depth=8, hidden_act="silu", hidden_size=640, intermediate_size=1712, num_heads=8,
                           in_channels=3, patch_size=14, temporal_patch_size=2, spatial_merge_size=2, window_size=112,
                           fullatt_block_indexes=[3, 7], tokens_per_second=2, out_hidden_size=1024),
        image_token_id=16001, video_token_id=VIDEO, vision_start_token_id=16003, tie_word_embeddings=False)
    model = Qwen2_5_VLForConditionalGeneration(config).to(dtype_of(dtype))
    model.save_pretrained(folder)


def make_smol(folder, dtype):
    import torch
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration
    torch.manual_seed(1)
    config = SmolVLMConfig(
        text_config=dict(model_type="llama", hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
                         num_attention_heads=12, num_key_value_heads=4, vocab_size=16384, rms_norm_eps=1e-5,
                         max_position_embeddings=8192, pad_token_id=2, eos_token_id=2, bos_token_id=1),
        vision_config=dict(hidden_size=512, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=8,
                           image_size=256, patch_size=16),
        scale_factor=4, image_token_id=16001, tie_word_embeddings=False)
    model = SmolVLMForConditionalGeneration(config).to(dtype_of(dtype))
    model.save_pretrained(folder)


def gguf_settings(text, tower, config):
    """What llama.cpp asks for beside the weights; the words of the vocabulary are numbers."""
    import gguf
    c, v = config["text_config"], config["vision_config"]
    text.add_block_count(c["num_hidden_layers"])
    text.add_context_length(c["max_position_embeddings"])
    text.add_embedding_length(c["hidden_size"])
    text.add_feed_forward_length(c["intermediate_size"])
    text.add_head_count(c["num_attention_heads"])
    text.add_head_count_kv(c["num_key_value_heads"])
    text.add_layer_norm_rms_eps(c["rms_norm_eps"])
    text.add_rope_freq_base(c["rope_parameters"]["rope_theta"])
    text.add_rope_dimension_sections([*c["rope_parameters"]["mrope_section"], 0])
    text.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    words = [f"<{i}>" for i in range(c["vocab_size"])]
    words[config["vision_start_token_id"]], words[config["vision_start_token_id"] + 1] = "<|vision_start|>", "<|vision_end|>"
    text.add_tokenizer_model("gpt2")
    text.add_tokenizer_pre("qwen2")
    text.add_token_list(words)
    text.add_token_types([gguf.TokenType.CONTROL if "|" in word else gguf.TokenType.NORMAL for word in words])
    text.add_token_merges(["a b"])
    text.add_eos_token_id(c["eos_token_id"])
    tower.add_string("clip.projector_type", "qwen2.5vl_merger")
    tower.add_clip_has_vision_encoder(True)
    tower.add_vision_projection_dim(v["out_hidden_size"])
    tower.add_vision_image_size(560)
    tower.add_vision_patch_size(v["patch_size"])
    tower.add_vision_embedding_length(v["hidden_size"])
    tower.add_vision_feed_forward_length(v["intermediate_size"])
    tower.add_vision_block_count(v["depth"])
    tower.add_vision_head_count(v["num_heads"])
    tower.add_vision_attention_layernorm_eps(1e-6)
    tower.add_vision_image_mean([0.5] * 3)
    tower.add_vision_image_std([0.5] * 3)
    tower.add_vision_use_silu(True)
    tower.add_vision_n_wa_pattern(v["fullatt_block_indexes"][0] + 1)
    tower.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)


def gguf_of(folder, target):
    """Needs the gguf package. Names and types as llama.cpp's converter gives them: F16 where a row is no whole blocks."""
    import json
    import pathlib
    import shutil

    import gguf
    from safetensors.torch import load_file
    folder, target = pathlib.Path(folder), pathlib.Path(target)
    target.mkdir()
    shutil.copy(folder / "config.json", target / "config.json")
    config = json.loads((folder / "config.json").read_text())
    tensors = {}
    for file in folder.glob("*.safetensors"):
        tensors.update(load_file(file))
    text, tower = gguf.GGUFWriter(target / "text.gguf", "qwen2vl"), gguf.GGUFWriter(target / "mmproj.gguf", "clip")
    gguf_settings(text, tower, config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2VL, config["text_config"]["num_hidden_layers"])
    tower_names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, config["vision_config"]["depth"])

    def put(out, name, tensor):
        data = tensor.float().numpy()
        kinds = gguf.GGMLQuantizationType
        kind = kinds.F32 if data.ndim != 2 else kinds.F16 if data.shape[1] % 32 else kinds.Q8_0
        out.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)

    for name, tensor in tensors.items():
        for before in ("model.", "language_model.", "model."):
            name = name.removeprefix(before)
        if not name.startswith("visual."):
            name = name if name.startswith("lm_head.") else "model." + name
            put(text, names.get_name(name, (".weight", ".bias")), tensor)
        elif name == "visual.patch_embed.proj.weight":
            for i, end in enumerate(("", ".1")):
                put(tower, "v.patch_embd.weight" + end, tensor[:, :, i].contiguous())
        elif ".qkv." in name:
            for part, rows in zip("qkv", tensor.chunk(3)):
                put(tower, tower_names.get_name(name.replace("qkv", part), (".weight", ".bias")), rows.contiguous())
        else:
            put(tower, tower_names.get_name(name, (".weight", ".bias")), tensor)
    for out in (text, tower):
        out.write_header_to_file()
        out.write_kv_data_to_file()
        out.write_tensors_to_file()
        out.close()


def opened(folder, dtype):
    """What looks, the language model, the head, and how many tokens are seen."""
    import json
    import pathlib

    import torch
    if json.loads((pathlib.Path(folder) / "config.json").read_text())["model_type"] == "smolvlm":
        from transformers import SmolVLMForConditionalGeneration
        model = SmolVLMForConditionalGeneration.from_pretrained(folder, dtype=dtype_of(dtype)).eval()
        frames = (torch.rand(1, 8, 3, 256, 256) * 2 - 1).to(dtype_of(dtype))

        def look():
            seen = model.model.get_image_features(frames)
            seen = getattr(seen, "pooler_output", seen)
            return (torch.cat(list(seen)) if isinstance(seen, (list, tuple)) else seen).reshape(128, -1)
        return look, model.model.text_model, model.lm_head, 128
    from transformers import Qwen2_5_VLForConditionalGeneration
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=dtype_of(dtype)).eval()
    patches = (torch.rand(2048, 1176) * 2 - 1).to(dtype_of(dtype))
    grid = torch.tensor([[8, 16, 16]])

    def look():
        seen = model.model.visual(patches, grid_thw=grid)
        return getattr(seen, "pooler_output", seen)
    return look, model.model.language_model, model.lm_head, 512


def measure(folder, dtype, rounds, tokens, clock):
    import torch
    now = time.perf_counter if clock == "wall" else time.process_time
    look, text, head, count = opened(folder, dtype)
    words = torch.arange(100, 100 + WORDS)[None]
    best = {}

    def timed(part, count, work):
        begin = now()
        result = work()
        best[part] = max(best.get(part, 0), count / (now() - begin))
        return result

    def prompt(seen, texts):
        x = torch.cat([seen[None], text.embed_tokens(words)], 1).expand(texts, -1, -1)
        out = text(inputs_embeds=x, use_cache=True)
        head(out.last_hidden_state[:, -1:])
        return out.past_key_values

    def write(past, texts):
        for i in range(tokens):
            out = text(input_ids=torch.full((texts, 1), 7 + i), past_key_values=past, use_cache=True)
            head(out.last_hidden_state)

    with torch.inference_mode():
        for _ in range(rounds):
            seen = timed("vision", count, look)
            past = timed("prefill", count + WORDS, lambda: prompt(seen, 1))
            timed("decode", tokens, lambda: write(past, 1))
            past = prompt(seen, TOGETHER)
            timed("decode-8", TOGETHER * tokens, lambda: write(past, TOGETHER))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for part, rate in best.items():
        print(f"torch {dtype} {part} peak {peak} MiB tokens/s {rate:.2f}")


if sys.argv[1] == "make":
    make(*sys.argv[2:4])
elif sys.argv[1] == "make-smol":
    make_smol(*sys.argv[2:4])
elif sys.argv[1] == "gguf":
    gguf_of(*sys.argv[2:4])
else:
    measure(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
