#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tokenizers.safetensors from sentencepiece and huggingface's tokenizers.

Tiny vocabularies of every kind that published models use are trained on a few sentences; the file
holds the tokenizers' files, some hundred texts (many scripts, emoji, combining marks, control
characters, malformed UTF-8, long words), and the ids that the reference gives for each.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3 \
        safetensors==0.8.0 numpy
    venv/bin/python scripts/golden/text_tokenizers.py

The same bytes at every run.

With --compare COUNT the texts are random and nothing is written: ids of build/tests/unit/text/tokenize
(ninja -C build tests/unit/text/tokenize) are compared with the reference's, for the same tokenizers
and for those with sentencepiece's whole NMT-NFKC table. Exit status 1 if any differ. (Of a *.model the
library itself is compared: where two cuts have the same score, its versions differ in about one of
10,000 such texts; with the version of pip that build/ is linked with, none does.)
"""
import argparse
import base64
import collections
import contextlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

import numpy
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parents[2]
SENTINELS = 100
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
CLIP = (r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")

SENTENCES = """A red fox crosses a snowy road in the morning light, and it doesn't look back.
The camera follows a small boat over the river; waves break against its side.
Two people are walking through the old town, they're talking and we'll see them turn the corner.
A time-lapse of clouds over mountains: 24 frames per second, 1920x1080, shot in 2019.
An astronaut floats beside the station while the earth turns slowly below her.
Close-up of hands shaping clay on a potter's wheel, water running over the fingers.
Une vidéo d'un café à Paris où l'on prépare une crème brûlée, près de la fenêtre.
Größe, Straße und Übermut: ein Zug fährt durch die verschneite Landschaft.
El niño corrió rápidamente hacia la montaña, ¿verdad? ¡Qué sueño tan extraño!
Красная лиса переходит заснеженную дорогу, а камера медленно следует за ней.
Η κάμερα ακολουθεί μια μικρή βάρκα στη θάλασσα, ΣΊΣΥΦΟΣ.
赤い狐が雪の道を渡る。カメラはゆっくりと追いかけます。東京タワーの夜景。
一只红色的狐狸穿过雪地的道路，镜头慢慢跟随。二零二四年的城市夜景。
붉은 여우가 눈 덮인 길을 건너고 카메라가 천천히 따라간다.
कैमरा धीरे-धीरे लाल लोमड़ी का पीछा करता है, और वह सड़क पार करती है।
สุนัขจิ้งจอกสีแดงเดินข้ามถนนที่มีหิมะ กล้องค่อยๆ ตามไป
الثعلب الأحمر يعبر الطريق الثلجي، والكاميرا تتبعه ببطء.
השועל האדום חוצה את הכביש המושלג, והמצלמה עוקבת אחריו לאט.
Con cáo đỏ băng qua con đường tuyết, máy quay từ từ đi theo.
Nowhere in the night is there a star, an owl, or a lantern; only snow, snow and more snow.
""".splitlines()

# What sentencepiece's own table does, in small: controls, spaces, widths, ligatures, a composition.
RULES = [("\x01", ""), ("\x07", ""), ("\x7f", ""), ("\t", " "), ("\n", " "), ("\r", " "), ("\u00a0", " "),
         ("\u200b", " "), ("\u200d", " "), ("\u3000", " "), ("\ufeff", " "), ("\ufb01", "fi"), ("\ufb02", "fl"),
         ("\u2026", "..."), ("\u2460", "1"), ("\u00bd", "1\u20442"), ("e\u0301", "é"), ("a\u0300", "à"), ("\u0e33", "ํา"),
         ("\uff01", "!"), ("\u2581", "_"), ("\ufdfa", "صلى الله عليه وسلم")]
RULES += [(chr(0xff21 + i), chr(0x41 + i)) for i in range(26)]


def spm(directory, name, **options):
    """A sentencepiece model, as bytes."""
    (directory / "corpus.txt").write_text("\n".join(SENTENCES * 3))
    # The model remembers the names that it was made with.
    with contextlib.chdir(directory):
        sentencepiece.SentencePieceTrainer.train(
            input="corpus.txt", model_prefix=name, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
            user_defined_symbols=["<mark>", "▁snowy▁road"], character_coverage=0.985, minloglevel=2,
            num_threads=1, hard_vocab_limit=False, **options)
    return (directory / f"{name}.model").read_bytes()


def unigram(model, added=SENTINELS, **options):
    """What a Unigram tokenizer.json has of a sentencepiece model: the vocabulary and its table."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model)
    vocab = [(p.piece, p.score) for p in proto.pieces]
    vocab += [(f"<extra_id_{i}>", 0.0) for i in range(added - 1, -1, -1)]
    return (Tokenizer(models.Unigram(vocab, unk_id=2, **options)),
            normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))


def words_of(tokenizer):
    """How often each pre-tokenized piece of the sentences occurs."""
    words = collections.Counter()
    for sentence in SENTENCES:
        text = tokenizer.normalizer.normalize_str(sentence) if tokenizer.normalizer else sentence
        pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text) if tokenizer.pre_tokenizer else [(text, None)]
        words.update(piece for piece, _ in pieces)
    return words


def train(tokenizer, size, special, alphabet, limit, prefix="", suffix="", longest=12):
    """Tokens and merges by byte-pair encoding. The library's own trainers break ties by the order of
    a hash table that differs from run to run; here they go by the names of the tokens."""
    words = words_of(tokenizer)
    counts = collections.Counter()
    for word, count in words.items():
        counts.update({c: count * word.count(c) for c in set(word)})
    known = set(alphabet) | {c for c, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]}
    split = {}
    for word, count in sorted(words.items()):
        symbols = [c for c in word if c in known]
        if symbols:
            symbols = [symbols[0]] + [prefix + c for c in symbols[1:]]
            split[word] = (symbols[:-1] + [symbols[-1] + suffix], count)
    tokens = dict.fromkeys(special) | dict.fromkeys(sorted(known))
    tokens |= dict.fromkeys(sorted({c for symbols, _ in split.values() for c in symbols}))
    merges = []
    while len(tokens) < size:
        pairs = collections.Counter()
        for symbols, count in split.values():
            for pair in zip(symbols, symbols[1:]):
                if len(pair[0]) + len(pair[1]) - len(prefix) <= longest:
                    pairs[pair] += count
        if not pairs:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        made = left + right[len(prefix):]
        for symbols, _ in split.values():
            for i in range(len(symbols) - 2, -1, -1):
                if symbols[i:i + 2] == [left, right]:
                    symbols[i:i + 2] = [made]
        merges.append((left, right))
        tokens[made] = None
    return {token: i for i, token in enumerate(tokens)}, merges


def bpe(size, normalizer=None, pre=None, initial=(), **options):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    special = [options["unk_token"]] if "unk_token" in options else []
    special += initial
    alphabet = [] if initial else pre_tokenizers.ByteLevel.alphabet()
    vocab, merges = train(tokenizer, size, special, alphabet, max(0, size // 3 - len(alphabet)),
                          suffix=options.get("end_of_word_suffix", ""))
    tokenizer.model = models.BPE(vocab=vocab, merges=merges, **options)
    tokenizer.add_special_tokens(special)
    return tokenizer


def word_piece(normalizer, pre):
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab, _ = train(tokenizer, 420, special, [], 150, prefix="##", longest=100)
    tokenizer.model = models.WordPiece(vocab=vocab, unk_token="[UNK]")
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def ends(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])


def unigram_files(model, prefix=""):
    """Unigram as T5's converter, XLM-R's, and one with byte fallback have it."""
    t5, table = unigram(model)
    t5.normalizer = table
    t5.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t5.add_special_tokens(["<pad>", "</s>", "<unk>"])
    t5.add_special_tokens([AddedToken(f"<extra_id_{i}>", normalized=False) for i in range(SENTINELS)])
    ends(t5)
    xlm, table = unigram(model, 0)
    xlm.normalizer = normalizers.Sequence(
        [table, normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    xlm.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    xlm.add_tokens([AddedToken("owl", single_word=True), AddedToken("Night", normalized=True),
                    AddedToken("<left>", lstrip=True), AddedToken("<both>", lstrip=True, rstrip=True, normalized=False)])
    xlm.post_processor = processors.RobertaProcessing(("</s>", 1), ("<pad>", 0))
    bytes_, table = unigram(model, 0, byte_fallback=True)
    vocab = json.loads(bytes_.to_str())["model"]["vocab"] + [[f"<0x{b:02X}>", 0.0] for b in range(256)]
    bytes_ = Tokenizer(models.Unigram([tuple(v) for v in vocab], unk_id=2, byte_fallback=True))
    bytes_.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Nmt(), normalizers.NFKC()])
    bytes_.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return {prefix + "t5.json": t5.to_str(), prefix + "xlm.json": xlm.to_str(), prefix + "bytes.json": bytes_.to_str()}


def bpe_files():
    level = pre_tokenizers.ByteLevel
    qwen = bpe(560, normalizers.NFC(), pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN), "isolated"), level(add_prefix_space=False, use_regex=False)]))
    qwen.post_processor = processors.ByteLevel(trim_offsets=False)
    qwen.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    gpt2 = bpe(540, None, level(add_prefix_space=True))
    gpt2.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    gpt2.post_processor = processors.RobertaProcessing(("</s>", gpt2.token_to_id("</s>")),
                                                       ("<s>", gpt2.token_to_id("<s>")))
    smol = bpe(520, None, pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]))
    clip = bpe(780, normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
                                 level(add_prefix_space=False)]),
        unk_token="<|endoftext|>", end_of_word_suffix="</w>", continuing_subword_prefix="")
    clip.add_special_tokens(["<|startoftext|>"])
    clip.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0),
                                                       ("<|startoftext|>", clip.token_to_id("<|startoftext|>")))
    fallback = [f"<0x{b:02X}>" for b in range(256)]
    gemma = bpe(480, normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), fallback,
                unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    gemma.add_special_tokens(["<bos>"])
    gemma.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", gemma.token_to_id("<bos>"))])
    llama = bpe(300, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
                fallback[:40], unk_token="<unk>", fuse_unk=False, byte_fallback=True, ignore_merges=True)
    return {"qwen.json": qwen, "gpt2.json": gpt2, "smol.json": smol, "clip.json": clip, "gemma.json": gemma,
            "llama.json": llama}


def all_files(directory, whole_table):
    """Name to contents."""
    tsv = directory / "rules.tsv"
    hexadecimal = lambda s: " ".join(f"{ord(c):X}" for c in s)
    tsv.write_text("".join(f"{hexadecimal(a)}\t{hexadecimal(b)}\n" for a, b in RULES))
    rules = dict(normalization_rule_tsv=tsv.name)
    t5 = spm(directory, "t5", model_type="unigram", vocab_size=420, **rules)
    files = {"t5.model": t5, "bpe.model": spm(directory, "bpe", model_type="bpe", vocab_size=560,
                                              byte_fallback=True, normalization_rule_name="identity")}
    files |= unigram_files(t5)
    if whole_table:
        nmt = spm(directory, "nmt", model_type="unigram", vocab_size=420, normalization_rule_name="nmt_nfkc")
        files |= {"nmt_t5.model": nmt} | unigram_files(nmt, "nmt_")
    bert = word_piece(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    bert.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    cased = word_piece(normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                             normalizers.Strip()]), pre_tokenizers.Whitespace())
    files |= {name: tokenizer.to_str() for name, tokenizer in
              (bpe_files() | {"bert.json": bert, "words.json": cased}).items()}
    # The indentation-free form; merges as pairs of strings are as the library writes them.
    return {name: value if isinstance(value, bytes) else value.encode() for name, value in files.items()}


class Reference:
    """ids(text) of one file, by the library that it belongs to."""

    def __init__(self, name, contents):
        if name.endswith(".json"):
            self.tokenizer, self.model = Tokenizer.from_str(contents.decode()), None
            return
        self.model = sentencepiece.SentencePieceProcessor(model_proto=contents)
        size, special = self.model.get_piece_size(), {}
        for i in range(size):
            if self.model.is_control(i) or self.model.is_unknown(i):
                special[self.model.id_to_piece(i)] = i
        sentinels = "|".join(rf"\s*<extra_id_{i}>\s*" for i in range(SENTINELS - 1, -1, -1))
        self.special = {**special, **{f"<extra_id_{i}>": size + SENTINELS - 1 - i for i in range(SENTINELS)}}
        self.split = re.compile("(" + sentinels + "|" + "|".join(map(re.escape, special)) + ")")

    def ids(self, text):
        if self.model is None:
            return self.tokenizer.encode(text).ids
        ids = []
        for part in self.split.split(text):
            if part.strip() in self.special and self.split.fullmatch(part):
                ids.append(self.special[part.strip()])
            else:
                ids += self.model.encode(part)
        return ids + [self.model.eos_id()]


HARD = ["", " ", "  a  b ", "\t\n\r\n x\r", "a\u0000b", "\u0001leading", "don't we'll THEY'RE I'd 'S 'ſ x's", "３D ＡＢＣ！ ﬁre ½ … ①",
        "e\u0301 é e\u0301\u0302 a\u0300\u0316 ﬁ\u0301", "İstanbul ΣΊΣΥΦΟΣ ŒŸÆ Ǆ ß ẞ", "👩‍🚀 👨‍👩‍👧‍👦 👍🏽 🇫🇷🇩🇪 ☃\ufe0f 🏴\U000e0067\U000e0062\U000e007f",
        "<extra_id_0> fox <extra_id_99>  road<extra_id_7>", "<extra_id_100> <extra_id_> <extra_id_1", "</s> <unk> <pad> <s> [MASK]",
        " <mask> a<mask>", "<|im_start|>user\nhi<|im_end|>", "<|startoftext|> Fox <|endoftext|>", "<bos>a<bos>", "<mark>x<mark> snowy road",
        "owl owls an owl. bowl owl", "Night night NIGHT", "a <left> b   <left><both>  c <both>", "▁▁ under▁score ▁", "中文字符and日本語テスト", "กำลัง น้ำ ทำ",
        "الله ﷺ لا", "नमस्ते क्षत्रिय", "한국어 한국어", "\u200b\u200c\u200d\ufeff\u2028\u2029\u0085", "\ufffd\ufffe\U0010ffff\ue000",
        "0123456789 1,234.56 ٣٤٥ Ⅷ ²", "C++ a_b x-y (z) [w] {v} \\ / | ~ ` ^ $ # @ % & * = + < >", "\u1680\u2000\u2001\u202f\u205f\u3000x",
        "z" * 120, "supercalifragilistic" * 12, "wow " * 40, "的" * 60, "\u0301\u0302\u0303", "a\u034fb\u00adc\u061cd", "𝐁𝐨𝐥𝐝 𝔉𝔯𝔞𝔨 𐐀𐐨 𓀀"]
BROKEN = [b"\xff\xfe fox", b"a\xc3", b"\xe2\x82", b"\xf0\x9f\x98 road", b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf\xe0\x80\x80", b"\xf4\x90\x80\x80x",
          b"snow\x80\x80y", b"\xf0\x9f\x91\xa9\xe2\x80", b"\xe0\xa0 \xf8\x88\x80\x80\x80"]


def random_text(rng, alphabet):
    parts = []
    for _ in range(rng.choice((1, 2, 4, 8, 20))):
        kind = rng.random()
        if kind < 0.25:
            sentence = rng.choice(SENTENCES).split(" ")
            at = rng.randrange(len(sentence))
            parts.append(" ".join(sentence[at:at + rng.randint(1, 5)]))
        elif kind < 0.45:
            parts.append("".join(rng.choices(alphabet, k=rng.randint(1, 6))))
        elif kind < 0.6:
            block = rng.choice((0x20, 0xa0, 0x300, 0x370, 0x400, 0x590, 0x600, 0x900, 0xe00, 0x1100, 0x1e00, 0x2000,
                                0x2100, 0x2460, 0x3040, 0x3300, 0x4e00, 0xac00, 0xf900, 0xfb00, 0xff00, 0x1d400, 0x1f300, 0x1f900))
            parts.append("".join(c for c in (chr(block + rng.randrange(256)) for _ in range(rng.randint(1, 8)))
                                 if unicodedata.category(c) != "Cn"))
        elif kind < 0.75:
            hard = rng.choice(HARD)
            at = rng.randrange(len(hard) + 1)
            parts.append(hard[at:at + rng.randint(1, 12)])
        elif kind < 0.85:
            parts.append(rng.choice((" ", "  ", "\n", "\t", "\u00a0", "\u3000", "\u200d", "\ufe0f", "\u0301", "'s", "'LL", "▁", "\r\n")))
        else:
            parts.append(rng.choice(BROKEN).decode(errors="surrogateescape"))
        parts.append(rng.choice(("", "", " ")))
    text = "".join(parts).encode(errors="surrogateescape")
    if rng.random() < 0.05 and text:
        at = rng.randrange(len(text))
        broken = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        if all(unicodedata.category(c) != "Cn" for c in broken.decode(errors="replace")):
            return broken
    return text


def random_texts(count, seed):
    rng = random.Random(seed)
    # Assigned characters: ICU and the reference know different ones of the newest.
    alphabet = [chr(c) for c in range(0x110000)
                if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co") or c in (0xe000, 0xfdd0)]
    return [random_text(rng, alphabet) for _ in range(count)]


def compare(count, program, seed):
    texts = random_texts(count, seed)
    lines = "\n".join(t.hex() for t in texts) + "\n"
    different = 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for file, contents in all_files(directory, True).items():
            path = directory / file
            path.write_bytes(contents)
            out = subprocess.run([program, str(path), str(SENTINELS)], input=lines, capture_output=True, text=True, check=True).stdout
            reference, bad = Reference(file, contents), []
            for text, line in zip(texts, out.splitlines(), strict=True):
                expected = reference.ids(text.decode(errors="replace"))
                if expected != list(map(int, line.split())):
                    bad.append((text, expected, line))
            print(f"{file}: {len(texts)} texts, {len(bad)} differ", flush=True)
            for text, expected, line in bad[:3]:
                print("  ", text.decode(errors="replace").encode("unicode_escape"), "\n    ", expected, "\n    ", line)
            different += len(bad)
    sys.exit(different > 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compare", type=int, default=0, metavar="COUNT")
    parser.add_argument("--program", default=ROOT / "build/tests/unit/text/tokenize")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.compare:
        compare(options.compare, options.program, options.seed)
    texts = [t.encode() for t in HARD + SENTENCES[:8:2]] + BROKEN + [t[:48] for t in random_texts(52, 11)]
    tensors = {"texts": numpy.frombuffer(b"".join(texts), numpy.uint8),
               "text_sizes": numpy.array([len(t) for t in texts], numpy.int32)}
    with tempfile.TemporaryDirectory() as name:
        for file, contents in all_files(pathlib.Path(name), False).items():
            reference = Reference(file, contents)
            ids = [reference.ids(t.decode(errors="replace")) for t in texts]
            tensors["file." + file] = numpy.frombuffer(contents, numpy.uint8)
            tensors["ids." + file] = numpy.array(sum(ids, []), numpy.int16)
            tensors["counts." + file] = numpy.array([len(i) for i in ids], numpy.int16)
            print(file, len(contents), len(tensors["ids." + file]))
    path = ROOT / "tests/golden/tokenizers.safetensors"
    save_file(tensors, path, metadata={"tokenizers": tokenizers.__version__,
                                       "sentencepiece": sentencepiece.__version__})
    print(path, path.stat().st_size)


main()
