#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/sentences/ from transformers' BertModel, RobertaModel, XLMRobertaModel, CLIPModel and SiglipModel.

Tiny models with random weights, as save_pretrained writes them, with the tokenizers of
scripts/golden/text_tokenizers.py, which must have run before: bert (a masked language model, so with the
prefix "bert." and a head, as a sentence-transformers folder: modules.json, mean pooling, normalised), roberta
(a plain folder, in bf16), xlm-roberta (a Unigram tokenizer and the first token's vector, as bge-m3 has it), clip and
siglip (both towers; SigLIP with a sentencepiece model), siglip2 (the text tower alone, with Gemma's kind of
tokenizer). outputs.safetensors has of each the tokens of some texts, padded as its
users pad them, and "NAME.vectors": what transformers makes of these, pooled by the rules of
sentence-transformers 5 (Pooling, Normalize) or by the model.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 safetensors==0.8.0 \
        sentencepiece protobuf
    venv/bin/python scripts/golden/sentences.py
"""
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer
from transformers import (BertConfig, BertForMaskedLM, CLIPConfig, CLIPModel, RobertaConfig, RobertaModel,
                          SiglipConfig, SiglipModel, SiglipTextConfig, SiglipTextModel, SiglipTokenizer,
                          XLMRobertaConfig, XLMRobertaModel)

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
FOLDER = GOLDEN / "sentences"
TEXTS = ["A red fox crosses a snowy road in the morning light.", "owl", "",
         "  Two PEOPLE, walking; at night!\tIt's late. ", "wow " * 40]
TINY = dict(hidden_size=16, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2)
VISION = dict(TINY, image_size=8, patch_size=4, num_hidden_layers=1)


def tokenizer_bytes(name):
    return TOKENIZERS["file." + name].numpy().tobytes()


def draw(model):
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.normal_(0, 0.3)
            if "norm" in key.lower() and key.endswith("weight"):
                parameter.add_(1)
    return model.eval()


def save(name, model, files, dtype=torch.float32):
    """The model in a folder, and itself in f32 with the values that it has there."""
    folder = FOLDER / name
    model.to(dtype).save_pretrained(folder)
    model.float()
    (folder / "model.safetensors").chmod(0o644)
    for file, contents in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(contents if isinstance(contents, bytes)
                                    else (json.dumps(contents, indent=2) + "\n").encode())
    return model


def cut(tokenizer, text, most):
    """Ids with the special tokens; what is too much is cut from the text."""
    tokenizer.enable_truncation(most)
    return tokenizer.encode(text).ids


def put(tensors, name, ids, vectors):
    tensors[name + ".ids"] = torch.tensor(sum(ids, []), dtype=torch.int32)
    tensors[name + ".lengths"] = torch.tensor([len(i) for i in ids], dtype=torch.int32)
    tensors[name + ".vectors"] = vectors.float().contiguous()
    print(name, [len(i) for i in ids], vectors.abs().max().item(), vectors.std().item())


def states(model, ids):
    """Last hidden states of texts padded together, and the mask."""
    longest = max(map(len, ids))
    mask = torch.tensor([[1] * len(i) + [0] * (longest - len(i)) for i in ids])
    padding = model.config.pad_token_id
    batch = torch.tensor([i + [padding] * (longest - len(i)) for i in ids])
    return model(input_ids=batch, attention_mask=mask).last_hidden_state, mask


def mean(hidden, mask):
    """sentence-transformers' Pooling, and Normalize."""
    weights = mask[:, :, None].float()
    return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=1)


def bert(tensors):
    tokenizer = Tokenizer.from_str(tokenizer_bytes("bert.json").decode())
    model = draw(BertForMaskedLM(BertConfig(**TINY, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=40)))
    entry = lambda i, path, kind: {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
    save("bert", model, {
        "tokenizer.json": tokenizer_bytes("bert.json"),
        "modules.json": [entry(0, "", "Transformer"), entry(1, "1_Pooling", "Pooling"), entry(2, "2_Normalize", "Normalize")],
        "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_cls_token": False,
                                  "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
                                  "pooling_mode_mean_sqrt_len_tokens": False},
        "sentence_bert_config.json": {"max_seq_length": 24, "do_lower_case": False}})
    ids = [cut(tokenizer, text.strip(), 24) for text in TEXTS]
    hidden, mask = states(model.bert, ids)
    put(tensors, "bert", ids, mean(hidden, mask))
    tensors["bert.cls"] = hidden[:, 0].contiguous()


def roberta(tensors):
    tokenizer = Tokenizer.from_str(tokenizer_bytes("gpt2.json").decode())
    model = draw(RobertaModel(RobertaConfig(**TINY, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=34,
                                            type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)))
    save("roberta", model, {"tokenizer.json": tokenizer_bytes("gpt2.json")}, torch.bfloat16)
    ids = [cut(tokenizer, text.strip(), 32) for text in TEXTS]
    put(tensors, "roberta", ids, mean(*states(model, ids)))


def xlm_roberta(tensors):
    tokenizer = Tokenizer.from_str(tokenizer_bytes("xlm.json").decode())
    # A token that no text has: where padding stands, transformers counts no place.
    padding = tokenizer.token_to_id("<mark>")
    model = draw(XLMRobertaModel(XLMRobertaConfig(**TINY, vocab_size=tokenizer.get_vocab_size(), type_vocab_size=1,
                                                  max_position_embeddings=26, layer_norm_eps=1e-5, pad_token_id=padding)))
    entry = lambda i, path, kind: {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
    save("xlm-roberta", model, {
        "tokenizer.json": tokenizer_bytes("xlm.json"),
        "modules.json": [entry(0, "", "Transformer"), entry(1, "1_Pooling", "Pooling"), entry(2, "2_Normalize", "Normalize")],
        "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_cls_token": True,
                                  "pooling_mode_mean_tokens": False},
        "sentence_xlm-roberta_config.json": {"max_seq_length": 22}}, torch.float16)
    ids = [cut(tokenizer, text.strip(), 22) for text in TEXTS]
    hidden, _ = states(model, ids)
    put(tensors, "xlm-roberta", ids, torch.nn.functional.normalize(hidden[:, 0], dim=1))


def clip(tensors):
    tokenizer = Tokenizer.from_str(tokenizer_bytes("clip.json").decode())
    end = tokenizer.token_to_id("<|endoftext|>")
    model = draw(CLIPModel(CLIPConfig(projection_dim=12, vision_config=VISION, text_config=dict(
        TINY, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=20, eos_token_id=end))))
    save("clip", model, {"tokenizer.json": tokenizer_bytes("clip.json")}, torch.bfloat16)
    ids = [cut(tokenizer, text, 20) for text in TEXTS]
    longest = max(map(len, ids))
    # As CLIP's tokenizer pads: with the end, behind it. None is seen by what is before.
    batch = torch.tensor([i + [end] * (longest - len(i)) for i in ids])
    vectors = model.get_text_features(input_ids=batch).pooler_output
    put(tensors, "clip", ids, torch.nn.functional.normalize(vectors, dim=1))


def siglip(tensors):
    """With transformers' own tokenizer: lower case, no punctuation, padded; and without a mask."""
    # That one writes "▁" before a text itself, for which the test tokenizer has a rule of its own.
    pieces = sentencepiece_model_pb2.ModelProto.FromString(tokenizer_bytes("t5.model"))
    pieces.normalizer_spec.precompiled_charsmap = b""
    model = draw(SiglipModel(SiglipConfig(vision_config=VISION, text_config=dict(
        TINY, vocab_size=len(pieces.pieces), max_position_embeddings=24, projection_size=12))))
    save("siglip", model, {"spiece.model": pieces.SerializeToString(),
                           "tokenizer_config.json": {"tokenizer_class": "SiglipTokenizer", "pad_token": "</s>"}},
         torch.float16)
    tokenizer = SiglipTokenizer(str(FOLDER / "siglip/spiece.model"))
    # Without white space at the ends, as SigLIP was trained; transformers leaves a token of what is before.
    texts = [text.strip() for text in TEXTS]
    ids = tokenizer(texts, padding="max_length", max_length=24, truncation=True)["input_ids"]
    vectors = model.get_text_features(input_ids=torch.tensor(ids)).pooler_output
    put(tensors, "siglip", ids, torch.nn.functional.normalize(vectors, dim=1))


def siglip2(tensors):
    tokenizer = Tokenizer.from_str(tokenizer_bytes("gemma.json").decode())
    padding = tokenizer.token_to_id("<0x00>")
    model = draw(SiglipTextModel(SiglipTextConfig(**TINY, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=20)))
    save("siglip2", model, {"tokenizer.json": tokenizer_bytes("gemma.json"),
                            "tokenizer_config.json": {"tokenizer_class": "GemmaTokenizer", "pad_token": "<0x00>",
                                                      "added_tokens_decoder": {str(padding): {"content": "<0x00>"}}}},
         torch.float16)
    ids = [cut(tokenizer, text.strip().lower(), 20) for text in TEXTS]
    ids = [i + [padding] * (20 - len(i)) for i in ids]
    vectors = model(input_ids=torch.tensor(ids)).pooler_output
    put(tensors, "siglip2", ids, torch.nn.functional.normalize(vectors, dim=1))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(7)
    shutil.rmtree(FOLDER, ignore_errors=True)
    tensors = {}
    with torch.no_grad():
        for make in (bert, roberta, clip, siglip, siglip2, xlm_roberta):
            make(tensors)
    (FOLDER / "texts.json").write_text(json.dumps(TEXTS) + "\n")
    save_file(tensors, FOLDER / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (FOLDER / "outputs.safetensors").chmod(0o644)
    print(sum(f.stat().st_size for f in FOLDER.rglob("*") if f.is_file()))


TOKENIZERS = load_file(GOLDEN / "tokenizers.safetensors")
main()
