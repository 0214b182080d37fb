#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/smolvlm/ from transformers' SmolVLM and Idefics3.

Tiny models with random weights and a tokenizer of SmolLM2's kind: smolvlm (bf16, one file, names and files as the
published SmolVLM2 has them, places for more patches than a tile has) and idefics3 (f16, two files, the table of words
used twice, rotary frequencies stretched as Llama 3.1's, patches that do not fill a tile, files of transformers 5).
outputs.safetensors has what each computes in f32 of pictures of noise (scripts/golden/pictures.py): the logits of the
last tokens of prompts (a picture in tiles, a video, several turns with both, text alone) and what generate() writes
greedily. golden.json: hashes of tiles, as the Pillow processors make them, prompts as the processors write them,
frames that are taken of videos, places, numbers in words, defaults.

SmolVLM's processors of videos and of text are run without torchvision, which they would not need: their modules are
read by path. Frames of a video go through the processor of pictures without tiles, which does the same to pixels.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 pillow==12.3.0 xxhash num2words
    venv/bin/python scripts/golden/smolvlm.py
"""
import importlib.util
import json
import pathlib
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from num2words import num2words
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (Idefics3Config, Idefics3ForConditionalGeneration, SmolVLMConfig,
                          SmolVLMForConditionalGeneration)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.utils.chat_template_utils import render_jinja_template
from transformers.video_utils import VideoMetadata

from pictures import hash_of, noise


def by_path(name: str):
    root = pathlib.Path(transformers.__file__).parent / "models/smolvlm"
    full = f"transformers.models.smolvlm.{name}_by_path"
    spec = importlib.util.spec_from_file_location(full, root / f"{name}.py")
    module = sys.modules[full] = importlib.util.module_from_spec(spec)
    module.__package__ = "transformers.models.smolvlm"
    spec.loader.exec_module(module)
    return module


words_of, videos_of = by_path("processing_smolvlm"), by_path("video_processing_smolvlm")
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/smolvlm"
SPECIAL = (["<|endoftext|>", "<|im_start|>", "<|im_end|>"] +
           [f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)] +
           ["<global-img>", "<fake_token_around_image>", "<image>", "<end_of_utterance>"])
CORPUS = ["You are provided the following series of frames from a video.", "Frame from 00:01:", "User: Assistant:",
          "Describe in detail what this video shows.", "A red circle moves to the left of a blue square."]
# What the published folders of SmolVLM2 write around messages; that of SmolVLM and Idefics3 has no videos.
TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}{% if message['content'][0]['type'] == "
    "'image' %}{{':'}}{% else %}{{': '}}{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}"
    "{{line['text']}}{% elif line['type'] == 'image' %}{{ '<image>' }}VIDEO{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}")
TEMPLATES = {"smolvlm": TEMPLATE.replace("VIDEO", "{% elif line['type'] == 'video' %}{{ '<video>' }}"),
             "idefics3": TEMPLATE.replace("VIDEO", "")}
INPUT = {"do_convert_rgb": True, "do_image_splitting": True, "do_normalize": True, "do_pad": True, "do_rescale": True,
         "do_resize": True, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 1,
         "rescale_factor": 0.00392156862745098}
INPUTS = {"smolvlm": {**INPUT, "size": {"longest_edge": 40}, "max_image_size": {"longest_edge": 16}},
          "idefics3": {**INPUT, "size": {"longest_edge": 60}, "max_image_size": {"longest_edge": 31}}}
SAMPLING = {"fps": 1, "max_frames": 6, "video_size": {"longest_edge": 16}}
VISION = {"smolvlm": {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2,
                      "image_size": 20, "patch_size": 4},
          "idefics3": {"hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 3,
                       "image_size": 31, "patch_size": 5, "layer_norm_eps": 1e-5}}
TEXT = {"smolvlm": {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6,
                    "num_key_value_heads": 2, "rope_theta": 5000.0},
        "idefics3": {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
                     "num_key_value_heads": 1, "rope_theta": 500000.0,
                     "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                      "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}}
MERGE = {"smolvlm": 2, "idefics3": 3}
PICTURES = [(40, 30), (30, 47), (16, 16), (7, 90), (90, 4), (1, 1), (33, 21)]


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=330, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return made


def processor_of(name: str, **more):
    made = SmolVLMImageProcessorPil if name == "smolvlm" else Idefics3ImageProcessorPil
    return made(**{**INPUTS[name], "return_row_col_info": True, **more})


def tiles_of(name: str, picture, **more) -> tuple:
    made = processor_of(name, **more)(picture, return_tensors="np")
    values, mask = np.asarray(made["pixel_values"])[0], np.asarray(made["pixel_attention_mask"])
    assert values.dtype == np.float32 and mask.min() == 1
    return values, int(made["rows"][0][0]), int(made["cols"][0][0])


class Texts:
    """What SmolVLMProcessor writes for pictures and videos; Idefics3Processor writes the same for pictures."""

    def __init__(self, tokens: int):
        self.own = SimpleNamespace(image_seq_len=tokens, image_token="<image>", global_image_token="<global-img>",
                                   fake_image_token="<fake_token_around_image>")

    def picture(self, rows: int, columns: int) -> str:
        return words_of.get_image_prompt_string(rows, columns, self.own.image_seq_len, self.own.fake_image_token,
                                                self.own.image_token, self.own.global_image_token)

    def video(self, indices: list, rate: float, total: int) -> str:
        metadata = VideoMetadata(total_num_frames=total, fps=rate, duration=total / rate, frames_indices=indices)
        return words_of.SmolVLMProcessor.replace_video_token(
            self.own, {"pixel_values": np.zeros((1, len(indices))), "video_metadata": [metadata]}, 0)


def frames_of(total: int, rate: float, fps: float, most: int) -> list:
    metadata = VideoMetadata(total_num_frames=total, fps=rate, duration=total / rate)
    return [int(i) for i in videos_of.SmolVLMVideoProcessor.sample_frames(SimpleNamespace(num_frames=most, fps=fps),
                                                                          metadata)]


def chat(template: str, messages: list) -> str:
    return render_jinja_template([messages], chat_template=template, add_generation_prompt=True)[0][0]


def message(*content, role: str = "user") -> dict:
    return {"role": role, "content": [{"type": "text", "text": c[1:]} if c[0] == "." else {"type": c}
                                      for c in content]}


def fill(text: str, mark: str, by: list) -> str:
    parts = text.split(mark)
    assert len(parts) == len(by) + 1, (text, len(by))
    return "".join(part + (by[i] if i < len(by) else "") for i, part in enumerate(parts))


def main() -> None:
    torch.manual_seed(11)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    words = tokenizer()
    ids_by_name = {token: words.token_to_id(token) for token in SPECIAL}
    image = ids_by_name["<image>"]
    tensors, golden = {}, {"tiles": {}, "prompts": {}}
    for name in ("smolvlm", "idefics3"):
        made = (SmolVLMConfig if name == "smolvlm" else Idefics3Config)(
            vision_config=dict(VISION[name]), scale_factor=MERGE[name], image_token_id=image,
            tie_word_embeddings=name == "idefics3", pad_token_id=ids_by_name["<|im_end|>"],
            text_config={"model_type": "llama", "vocab_size": words.get_vocab_size(), "max_position_embeddings": 2048,
                         "rms_norm_eps": 1e-5, "eos_token_id": ids_by_name["<|im_end|>"],
                         "bos_token_id": ids_by_name["<|im_start|>"], "pad_token_id": ids_by_name["<|im_end|>"],
                         **json.loads(json.dumps(TEXT[name]))})
        kind = SmolVLMForConditionalGeneration if name == "smolvlm" else Idefics3ForConditionalGeneration
        model = kind(made).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.normal_(0, 0.25)
                if "norm" in key and key.endswith("weight"):
                    parameter.add_(1)
        model.to(torch.bfloat16 if name == "smolvlm" else torch.float16)
        write_folder(name, model, made, words, ids_by_name)
        rounded = {key: value.float() for key, value in model.state_dict().items()}
        model = kind(made).eval()
        model.load_state_dict(rounded)

        side = INPUTS[name]["max_image_size"]["longest_edge"] // VISION[name]["patch_size"]
        texts = Texts((side // MERGE[name]) ** 2)
        golden["tiles"][name] = []
        for i, size in enumerate(PICTURES):
            values, rows, columns = tiles_of(name, noise(*size, i))
            one, _, _ = tiles_of(name, noise(*size, i), do_image_splitting=False)
            golden["tiles"][name].append({"picture": size, "seed": i, "rows": rows, "columns": columns,
                                          "still": hash_of(values), "frame": hash_of(one)})
        still, rows, columns = tiles_of(name, noise(40, 30, 0))
        # Frames 0, 25 and 49 of 50 at 25 a second, and a second video, of 3000 at 24.
        first, second = frames_of(50, 25.0, 1.5, 6), frames_of(3000, 24.0, 0.02, 6)
        clips = [np.concatenate([tiles_of(name, noise(33, 21, seed + i), do_image_splitting=False)[0]
                                 for i in range(len(indices))]) for indices, seed in ((first, 10), (second, 20))]
        picture = texts.picture(rows, columns)
        if name == "smolvlm":
            videos = [texts.video(first, 25.0, 50), texts.video(second, 24.0, 3000)]
            template, seen = words_of.DEFAULT_CHAT_TEMPLATE, ["video"]
            assert chat(template, [message("video", ".Hi?")]) == chat(TEMPLATES[name], [message("video", ".Hi?")])
        else:
            videos = [texts.picture(0, 0) * len(indices) for indices in (first, second)]
            template, seen = TEMPLATES[name], ["image"] * len(first)

        def video_chat(messages: list, by: list) -> str:
            if name == "smolvlm":
                return fill(chat(template, messages), "<video>", by)
            own = fill(chat(template, messages), "<image>" * len(first), by)
            assert len(first) == 3
            return own

        turns = chat(TEMPLATES[name], [message("image", ".What moves?"), message(".A circle.", role="assistant"),
                                       message(".And", "image", ".then 12 of them?")])
        small = tiles_of(name, noise(16, 16, 2))
        mixed = fill(turns, "<image>", [picture, texts.picture(small[1], small[2])])
        mixed = mixed.replace("then", "in " + videos[1] + "then")
        cases = {"image": (fill(chat(TEMPLATES[name], [message("image", ".Describe.")]), "<image>", [picture]), [still]),
                 "video": (video_chat([message(*seen, ".Describe in detail.")], [videos[0]]), [clips[0]]),
                 "turns": (mixed, [still, small[0], clips[1]]),
                 "text": (chat(TEMPLATES[name], [message(".How are you? été 東京")]), [])}
        golden["prompts"][name] = {"frames": [first, second]}
        for case, (prompt, pictures) in cases.items():
            ids = words.encode(prompt).ids
            given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            if pictures:
                given["pixel_values"] = torch.from_numpy(np.concatenate(pictures))[None]
                given["pixel_attention_mask"] = torch.ones_like(given["pixel_values"][:, :, 0], dtype=torch.long)
            with torch.no_grad():
                logits = model(**given).logits[0]
                tensors[f"{name}.{case}.ids"] = torch.tensor(ids, dtype=torch.int32)
                tensors[f"{name}.{case}.logits"] = logits[-2:].contiguous()
                for penalty in (1.0, 1.3):
                    written = model.generate(**given, max_new_tokens=10, do_sample=False, repetition_penalty=penalty,
                                             eos_token_id=ids_by_name["<end_of_utterance>"],
                                             pad_token_id=ids_by_name["<|im_end|>"])[0, len(ids):].to(torch.int32)
                    tensors[f"{name}.{case}.greedy{penalty}"] = written
                    print(name, case, len(ids), penalty, written.tolist(), repr(words.decode(written.tolist())))
    save_file({key: value.contiguous() for key, value in tensors.items()}, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "outputs.safetensors").chmod(0o644)
    add_rules(golden)
    (GOLDEN / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    for f in sorted(GOLDEN.rglob("*")):
        if f.is_file():
            print(f.relative_to(GOLDEN), f.stat().st_size)


def add_rules(golden: dict) -> None:
    """What the published sizes give: tiles, frames, places, words; and what a config.json without fields stands for."""
    published = {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}}
    golden["grids"] = []
    for size in ((1920, 1080), (1080, 1920), (64, 48), (640, 640), (3000, 100), (1, 700), (511, 2049), (1000, 999)):
        made = SmolVLMImageProcessorPil(**{**INPUT, **published})
        _, rows, columns = made.get_number_of_image_patches(size[1], size[0])
        values = made(noise(*size, 3), return_tensors="np", return_row_col_info=True)
        golden["grids"].append([*size, int(values["rows"][0][0]), int(values["cols"][0][0])])
    golden["frames"] = [[total, rate, fps, most, frames_of(total, rate, fps, most)]
                        for total, rate, fps, most in ((256, 30.0, 1, 64), (1, 25.0, 1, 64), (10, 30.0, 1, 64),
                                                       (75, 25.0, 0.5, 64), (3000, 25.0, 1, 6), (3000, 23.976, 0.1, 6),
                                                       (100, 30.0, 30, 64), (7, 1.0, 240, 64), (256, 29.97, 2, 64),
                                                       (12000, 30.0, 1, 64), (20, 0.1, 1, 6), (9, 2.0, 1, 5))]
    golden["words"] = {n: num2words(n) for n in (*range(0, 122), 199, 200, 999, 1000, 1001, 1100, 1234, 4096, 20015)}
    golden["places"] = [[n, m, places_of(n, m)] for n, m in ((32, 32), (27, 27), (26, 26), (24, 24), (16, 16), (14, 14),
                                                              (1, 9), (4, 5), (6, 5), (31, 32), (33, 32), (13, 26))]
    made = [texts.video(*case) for texts in [Texts(1)]
            for case in (([0, 59, 60], 1.0, 3661), ([0, 1], 1e-4, 20), ([5, 90000], 25.0, 90001))]
    golden["videos"] = [[[0, 59, 60], 1.0, 3661, made[0]], [[0, 1], 1e-4, 20, made[1]], [[5, 90000], 25.0, 90001, made[2]]]
    golden["sizes"] = [videos_of_size({**INPUT, **published, "video_sampling": dict(SAMPLING)}),
                       videos_of_size({**INPUT, "max_image_size": {"longest_edge": 512},
                                       "video_sampling": dict(SAMPLING)})]
    config = SmolVLMConfig(text_config={"model_type": "llama"}).to_dict()
    golden["defaults"] = {key: config[key] for key in ("text_config", "vision_config", "image_token_id", "scale_factor",
                                                       "tie_word_embeddings")}


def videos_of_size(config: dict) -> int:
    """The longest edge that a frame is resized to first, of a preprocessor_config.json."""
    return videos_of.SmolVLMVideoProcessor(**config).size["longest_edge"]


def places_of(n: int, m: int) -> list:
    """By SmolVLMVisionEmbeddings: those of its first row of patches."""
    made = SmolVLMForConditionalGeneration.config_class(vision_config={"hidden_size": 4, "num_attention_heads": 1,
                                                                       "image_size": m, "patch_size": 1}).vision_config
    from transformers.models.smolvlm.modeling_smolvlm import SmolVLMVisionEmbeddings
    embeddings = SmolVLMVisionEmbeddings(made)
    with torch.no_grad():
        embeddings.patch_embedding.weight.zero_()
        embeddings.patch_embedding.bias.zero_()
        numbers = torch.arange(m * m, dtype=torch.float32)[:, None].expand(-1, 4)
        embeddings.position_embedding.weight.copy_(numbers)
        out = embeddings(torch.zeros(1, 3, n, n), torch.ones(1, n, n, dtype=torch.bool))
    return [int(x) for x in out[0, :n, 0]]


def write_folder(name: str, model, config, words: Tokenizer, ids: dict) -> None:
    folder = GOLDEN / name
    folder.mkdir(parents=True)
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    if name == "smolvlm":
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        text = {"architectures": ["VLlama3ForCausalLM"], "model_type": "llama", "vocab_size": words.get_vocab_size(),
                "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "eos_token_id": ids["<|im_end|>"],
                "pixel_shuffle_factor": 2, "qk_layer_norms": False, "use_resampler": False, "rope_scaling": None,
                **TEXT[name]}
        (folder / "config.json").write_text(json.dumps(
            {"architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm", "image_token_id":
             ids["<image>"], "scale_factor": 2, "tie_word_embeddings": False, "text_config": text,
             "vision_config": {"model_type": "smolvlm_vision", "tie_word_embeddings": False, **VISION[name]}},
            indent=1) + "\n")
        (folder / "preprocessor_config.json").write_text(json.dumps(
            {**INPUTS[name], "image_processor_type": "SmolVLMImageProcessor", "processor_class": "SmolVLMProcessor",
             "video_sampling": SAMPLING}, indent=1) + "\n")
        (folder / "processor_config.json").write_text(json.dumps({"image_seq_len": 4, "processor_class":
                                                                  "SmolVLMProcessor"}) + "\n")
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATES[name]}) + "\n")
    else:
        parts, index = [{}, {}], {}
        for key, value in state.items():
            if key != "lm_head.weight":
                parts["vision" in key][key] = value
        for i, part in enumerate(parts):
            file = f"model-{i + 1:05}-of-00002.safetensors"
            save_file(part, folder / file, metadata={"format": "pt"})
            index.update({key: file for key in part})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}) + "\n")
        config.save_pretrained(folder)
        made = json.loads(processor_of(name).to_json_string())
        (folder / "processor_config.json").write_text(json.dumps(
            {"image_processor": made, "image_seq_len": 4, "processor_class": "Idefics3Processor"}, indent=1) + "\n")
        (folder / "chat_template.jinja").write_text(TEMPLATES[name])
    words.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer.json").write_text(json.dumps(json.loads((folder / "tokenizer.json").read_text()),
                                                      separators=(",", ":")))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<|im_start|>", "eos_token": "<end_of_utterance>", "pad_token": "<|im_end|>"}) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids["<end_of_utterance>"]}) + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)


main()
