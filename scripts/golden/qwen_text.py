#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/qwen_text/ from transformers' Qwen2.

Tiny models with random weights and the tokenizer of scripts/golden/qwen.py: tied (bf16, names and config.json as the
published folders of Qwen2.5 have them, the table of words used twice) and untied (f16, config.json of transformers 5, a
key head for each head). outputs.safetensors has what each computes in f32: tokens that apply_chat_template() makes of
conversations, the logits of their last two tokens, and what generate() writes greedily, with and without a repetition
penalty. defaults.json is Qwen2Config().

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 pillow==12.3.0 xxhash
    venv/bin/python scripts/golden/qwen_text.py
"""
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from qwen import SPECIAL, tokenizer

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/qwen_text"
# Contents are texts: a list would be an error, as it is in the published template.
TEMPLATE = (
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{%- if message.role != 'system' or not loop.first %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}")
CASES = {
    "text": [("user", "How are you? été 東京")],
    "refine": [("system", "Describe the video in detail."), ("user", "A red circle moves to the left.")],
    "turns": [("system", "You are a helpful assistant."), ("user", "What moves?"), ("assistant", "A circle."),
              ("user", "And the square?\nIn detail."), ("assistant", "A blue square moves."), ("user", "Where?")],
}
MODELS = {"tied": (torch.bfloat16, 32, 2, True), "untied": (torch.float16, 24, 4, False)}


def main() -> None:
    torch.manual_seed(11)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    words = tokenizer()
    id_of = {token: words.token_to_id(token) for token in SPECIAL}
    chat = PreTrainedTokenizerFast(tokenizer_object=words, chat_template=TEMPLATE)
    tensors = {}
    for name, (dtype, width, key_heads, tied) in MODELS.items():
        config = Qwen2Config(vocab_size=words.get_vocab_size(), hidden_size=width, intermediate_size=40,
                             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=key_heads,
                             rope_parameters={"rope_type": "default", "rope_theta": 1e6 if tied else 1e4},
                             tie_word_embeddings=tied, eos_token_id=id_of["<|im_end|>"],
                             bos_token_id=id_of["<|endoftext|>"])
        model = Qwen2ForCausalLM(config).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.normal_(0, 0.2 if tied else 0.4)
                if "norm" in key:
                    parameter.add_(1)
        model.to(dtype)
        folder = GOLDEN / name
        folder.mkdir(parents=True)
        state = {key: value.contiguous() for key, value in model.state_dict().items()
                 if not (tied and key == "lm_head.weight")}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)
        if tied:
            (folder / "config.json").write_text(json.dumps({
                "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": config.vocab_size,
                "hidden_size": width, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
                "num_key_value_heads": key_heads, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6,
                "max_position_embeddings": 32768, "max_window_layers": 1, "sliding_window": 131072,
                "use_sliding_window": False, "tie_word_embeddings": True, "eos_token_id": id_of["<|im_end|>"]},
                indent=1) + "\n")
        else:
            config.save_pretrained(folder)
        words.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer.json").write_text(json.dumps(json.loads((folder / "tokenizer.json").read_text()),
                                                          separators=(",", ":")))
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}) + "\n")
        (folder / "generation_config.json").write_text(
            json.dumps({"eos_token_id": [id_of["<|im_end|>"], id_of["<|endoftext|>"]]}) + "\n")
        rounded = {key: value.float() for key, value in model.state_dict().items()}
        model = Qwen2ForCausalLM(config).eval()
        model.load_state_dict(rounded)
        for case, turns in CASES.items():
            messages = [{"role": role, "content": text} for role, text in turns]
            ids = words.encode(chat.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)).ids
            given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            tensors[f"{name}.{case}.ids"] = torch.tensor(ids, dtype=torch.int32)
            with torch.no_grad():
                tensors[f"{name}.{case}.logits"] = model(**given).logits[0, -2:].contiguous()
                for penalty in (1.0, 1.3):
                    written = model.generate(**given, max_new_tokens=12, do_sample=False, repetition_penalty=penalty,
                                             eos_token_id=id_of["<|im_end|>"], pad_token_id=id_of["<|endoftext|>"])
                    tensors[f"{name}.{case}.greedy{penalty}"] = written[0, len(ids):].to(torch.int32)
                    print(name, case, penalty, tensors[f"{name}.{case}.greedy{penalty}"].tolist())
    save_file({key: value.contiguous() for key, value in tensors.items()}, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "outputs.safetensors").chmod(0o644)
    (GOLDEN / "defaults.json").write_text(json.dumps(Qwen2Config().to_dict()) + "\n")
    for f in sorted(GOLDEN.rglob("*")):
        if f.is_file():
            print(f.relative_to(GOLDEN), f.stat().st_size)


if __name__ == "__main__":
    main()
