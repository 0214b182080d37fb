#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/wan_files/: files in the forms of ComfyUI, Wan's authors and llama.cpp, by torch and gguf.

eight_bits.safetensors has all codes of the 8-bit floats and matrices with factors, five_bits.gguf a matrix in Q5_K.
comfy.safetensors (8-bit floats with factors, and the tokenizer as a tensor), authors.pth (bf16, the authors' names) and
llama.gguf (Q8_0, and the tokenizer as settings) are tiny umT5 encoders. numbers.safetensors has the values of the matrices, what transformers computes in
f32 with the values of each encoder, and the ids that sentencepiece makes of texts. Run
scripts/golden/text_tokenizers.py first: the tokenizer is from there.

    python3 -m venv venv
    venv/bin/pip install torch==2.15.0 transformers==5.24.0 safetensors==0.8.0 gguf==0.19.0 sentencepiece protobuf
    venv/bin/python scripts/golden/wan_files.py
"""
import pathlib

import gguf
import numpy as np
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from sentencepiece import sentencepiece_model_pb2
from transformers import UMT5Config, UMT5EncoderModel

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
FOLDER = GOLDEN / "wan_files"
TINY = dict(d_model=32, d_kv=16, d_ff=32, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu")
TEXTS = ("A red  car,\u3000driving", "caf\u00e9 \ufb01ne", "")
# From the names of transformers to those of Wan-Video/Wan2.1, wan/modules/t5.py.
AUTHORS = (("shared.", "token_embedding."), ("encoder.block.", "blocks."), ("encoder.final_layer_norm.", "norm."),
           (".layer.0.layer_norm.", ".norm1."), (".layer.1.layer_norm.", ".norm2."),
           (".layer.0.SelfAttention.relative_attention_bias.", ".pos_embedding.embedding."),
           (".layer.0.SelfAttention.", ".attn."), (".layer.1.DenseReluDense.wi_0.", ".ffn.gate.0."),
           (".layer.1.DenseReluDense.wi_1.", ".ffn.fc1."), (".layer.1.DenseReluDense.wo.", ".ffn.fc2."))
numbers = {}


def eight_bits() -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    file = {"e4m3": codes.view(torch.float8_e4m3fn), "e5m2": codes.clone().view(torch.float8_e5m2)}
    for name in ("e4m3", "e5m2"):
        numbers[name] = file[name].float()
    matrix = torch.randn(4, 32).to(torch.float8_e4m3fn)
    for name, scale in (("one", torch.tensor(0.0173)), ("half", torch.tensor([0.11], dtype=torch.bfloat16)),
                        ("rows", torch.rand(4, 1)), ("none", None)):
        file[f"{name}.weight"] = matrix.clone()
        if scale is not None:
            file[name + (".weight_scale" if name == "rows" else ".scale_weight")] = scale
        numbers[name] = matrix.float() * (1 if scale is None else scale.float())
    file["one.scale_input"] = torch.tensor(1.0)
    description = b'{"format": "float8_e4m3fn"}'
    file["rows.comfy_quant"] = torch.frombuffer(bytearray(description), dtype=torch.uint8)
    file["scaled_fp8"] = torch.empty(2, dtype=torch.float8_e4m3fn).zero_()
    save_file(file, FOLDER / "eight_bits.safetensors")


def five_bits() -> None:
    kind = gguf.GGMLQuantizationType.Q5_K
    blocks = np.random.default_rng(5).integers(0, 256, (6, 176), dtype=np.uint8)
    blocks[:, :4] = np.random.default_rng(6).uniform(0.5, 1, (6, 2)).astype(np.float16).view(np.uint8)
    writer = gguf.GGUFWriter(FOLDER / "five_bits.gguf", "none")
    writer.add_tensor("five_bits", blocks.reshape(3, 352), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    numbers["five_bits"] = torch.from_numpy(gguf.quants.dequantize(blocks.reshape(3, 352), kind))


def encoder(vocabulary: int) -> UMT5EncoderModel:
    model = UMT5EncoderModel(UMT5Config(vocab_size=vocabulary, **TINY)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.normal_(0, 1 if "bias" in key or "shared" in key else 0.25)
            if "norm" in key:
                parameter.add_(1)
    return model


def expect(name: str, model: UMT5EncoderModel, values: dict) -> None:
    model.load_state_dict(values, strict=False)
    ids = torch.tensor([[5, 17, 40, 9, 61, 1]])
    with torch.no_grad():
        numbers[name] = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]


def weights_of(model: UMT5EncoderModel) -> dict:
    return {k: v.detach().clone() for k, v in model.state_dict().items() if k != "encoder.embed_tokens.weight"}


def comfy(spiece: bytes) -> None:
    model = encoder(530)
    file, values = {"scaled_fp8": torch.zeros(2).to(torch.float8_e4m3fn),
                    "spiece_model": torch.frombuffer(bytearray(spiece), dtype=torch.uint8)}, {}
    for name, value in weights_of(model).items():
        if ".SelfAttention." not in name and ".DenseReluDense." not in name or "bias" in name:
            file[name] = value.half() if name == "shared.weight" else value
            values[name] = file[name].float()
            continue
        scale = value.abs().max() / 448
        file[name] = (value / scale).to(torch.float8_e4m3fn)
        file[name.replace(".weight", ".scale_weight")] = scale
        values[name] = file[name].float() * scale
    save_file(file, FOLDER / "comfy.safetensors")
    expect("comfy", model, values)


def authors() -> None:
    model = encoder(64)
    file, values = {}, {}
    for name, value in weights_of(model).items():
        there = name
        for one, other in AUTHORS:
            there = there.replace(one, other)
        file[there] = value.bfloat16()
        values[name] = file[there].float()
    torch.save(file, FOLDER / "authors.pth")
    expect("authors", model, values)


def llama(spiece: bytes) -> None:
    model = encoder(530)
    writer = gguf.GGUFWriter(FOLDER / "llama.gguf", "t5encoder")
    writer.add_block_count(TINY["num_layers"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5ENCODER, TINY["num_layers"])
    values = {}
    for name, value in weights_of(model).items():
        there = names.get_name(name, try_suffixes=(".weight",))
        rounds = value.ndim == 2 and "bias" not in name
        kind = gguf.GGMLQuantizationType.Q8_0 if rounds else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(value.numpy(), kind)
        writer.add_tensor(there, data, raw_dtype=kind)
        values[name] = torch.from_numpy(gguf.quants.dequantize(data, kind).astype(np.float32)).reshape(value.shape)
    proto = sentencepiece_model_pb2.ModelProto.FromString(spiece)
    writer.add_tokenizer_model("t5")
    writer.add_token_list([piece.piece.encode() for piece in proto.pieces])
    writer.add_token_scores([piece.score for piece in proto.pieces])
    writer.add_token_types([piece.type for piece in proto.pieces])
    writer.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
    if proto.normalizer_spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
    writer.add_eos_token_id(proto.trainer_spec.eos_id)
    writer.add_unk_token_id(proto.trainer_spec.unk_id)
    writer.add_pad_token_id(proto.trainer_spec.pad_id)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    expect("llama", model, values)


def main() -> None:
    torch.manual_seed(48)
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    spiece = load_file(GOLDEN / "tokenizers.safetensors")["file.t5.model"].numpy().tobytes()
    eight_bits()
    five_bits()
    comfy(spiece)
    authors()
    llama(spiece)
    processor = sentencepiece.SentencePieceProcessor(model_proto=spiece)
    for i, text in enumerate(TEXTS):
        numbers[f"ids.{i}"] = torch.tensor(processor.encode(text) + [processor.eos_id()], dtype=torch.int32)
        print(text, numbers[f"ids.{i}"].tolist())
    save_file({k: v.contiguous() for k, v in numbers.items()}, FOLDER / "numbers.safetensors",
              metadata={"torch": torch.__version__, "gguf": "0.19.0"})
    for file in FOLDER.iterdir():
        file.chmod(0o644)
        print(file.name, file.stat().st_size)


main()
