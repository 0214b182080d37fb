#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-VL in llama.cpp, by the C interface that llama-cpp-python binds: the parts that caption_speed.cc times, of the
same files.

    caption_speed_llama.py GGUF_DIR ROUNDS TOKENS wall|processor on|off     prints lines like caption_speed.cc's

on, off: flash attention. GGUF_DIR is what "caption_speed_torch.py gguf" writes. OMP_NUM_THREADS threads, or as many as
there are processors.
"""
import ctypes
import os
import pathlib
import resource
import sys
import time

import llama_cpp.llama_cpp as llama
import llama_cpp.mtmd_cpp as mtmd
import numpy

WORDS, TOGETHER, PAIRS, SIDE, SEEN_SIDE = 32, 8, 8, 224, 8
THREADS = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count())


@llama.llama_log_callback
def say_what_is_wrong(level, text, _):
    if level == 4:
        sys.stderr.write(text.decode(errors="replace"))


def need(result, what):
    if not result:
        sys.exit(f"caption_speed_llama.py: {what} has failed")
    return result


class Looker:
    """The vision tower, and a video for it: pairs of frames, each a chunk of its own, as its width is not joined."""

    def __init__(self, file, model, attention):
        params = mtmd.mtmd_context_params_default()
        params.use_gpu, params.warmup, params.print_timings = False, False, False
        params.n_threads, params.flash_attn_type = THREADS, attention
        self.context = need(mtmd.mtmd_init_from_file(str(file).encode(), model, params), "reading the tower")
        self.width = llama.llama_model_n_embd_inp(model)
        pixels = numpy.random.default_rng(1).integers(0, 256, (2 * PAIRS, SIDE, SIDE, 3), dtype=numpy.uint8)
        frames = [need(mtmd.mtmd_bitmap_init(SIDE, SIDE, frame.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))), "a frame")
                  for frame in pixels]
        for frame in frames:
            mtmd.mtmd_bitmap_set_mergeable(frame, True)
        text = mtmd.mtmd_default_marker() * len(frames)
        chunks = need(mtmd.mtmd_input_chunks_init(), "a list of chunks")
        failed = mtmd.mtmd_tokenize(self.context, chunks, ctypes.byref(mtmd.mtmd_input_text(text, len(text), False, True)),
                                    (ctypes.c_void_p * len(frames))(*frames), len(frames))
        need(not failed, "cutting the video into pairs of frames")
        all_chunks = (mtmd.mtmd_input_chunks_get(chunks, i) for i in range(mtmd.mtmd_input_chunks_size(chunks)))
        self.pairs = [chunk for chunk in all_chunks if mtmd.mtmd_input_chunk_get_type(chunk) == 1]
        self.tokens = [mtmd.mtmd_input_chunk_get_n_tokens(chunk) for chunk in self.pairs]
        need(self.tokens == [SEEN_SIDE * SEEN_SIDE] * PAIRS, f"making 64 tokens of each of 8 pairs ({self.tokens})")

    def look(self):
        seen = []
        for chunk, count in zip(self.pairs, self.tokens):
            need(mtmd.mtmd_encode_chunk(self.context, chunk) == 0, "looking")
            out = mtmd.mtmd_get_output_embd(self.context)
            seen.append(numpy.ctypeslib.as_array(out, (count * self.width,)).copy())
        return numpy.concatenate(seen)


def places_of(seen):
    """Times, rows and columns (and nothing) of what is seen, then of words."""
    frame, row, column = (seen // SEEN_SIDE**2, seen // SEEN_SIDE % SEEN_SIDE, seen % SEEN_SIDE)
    words = numpy.arange(WORDS) + PAIRS
    return numpy.concatenate([numpy.concatenate([axis, words]) for axis in (frame, row, column, 0 * seen)])


class Texts:
    """Several texts, each with a memory of its own, as f16."""

    def __init__(self, model, most, attention):
        params = llama.llama_context_default_params()
        room = (most + 255) // 256 * 256
        params.n_ctx, params.n_seq_max, params.kv_unified = room * TOGETHER, TOGETHER, False
        params.n_batch = params.n_ubatch = room  # a prompt is one product
        params.n_threads = params.n_threads_batch = THREADS
        params.flash_attn_type = attention
        self.context = need(llama.llama_init_from_model(model, params), "making room for texts")
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def decode(self, texts, places, last, token=None, embeddings=None):
        """The logits of the last `last` tokens; texts[i] is that of token i."""
        count = len(texts)
        numbers = [numpy.ascontiguousarray(x, numpy.int32) for x in (texts, places, numpy.ones(count))]
        as_ints = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)) for x in numbers]
        each = (ctypes.POINTER(ctypes.c_int32) * count)(*(
            ctypes.cast(ctypes.byref(as_ints[0].contents, 4 * i), ctypes.POINTER(ctypes.c_int32)) for i in range(count)))
        batch = llama.llama_batch(n_tokens=count, pos=as_ints[1], n_seq_id=as_ints[2], seq_id=each,
                                  logits=(ctypes.c_int8 * count)(*([0] * (count - last) + [1] * last)))
        if token is not None:
            batch.token = (ctypes.c_int32 * count)(*[token] * count)
        else:
            batch.embd = embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        need(llama.llama_decode(self.context, batch) == 0, "a step of the text model")
        logits = [llama.llama_get_logits_ith(self.context, count - 1 - i) for i in range(last)]
        need(all(numpy.isfinite(numpy.ctypeslib.as_array(x, (self.vocabulary,))).all() for x in logits[:1]), "any logit")

    def forget(self):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)


def measure(folder, rounds, tokens, clock, attention):
    folder = pathlib.Path(folder)
    now = time.perf_counter if clock == "wall" else time.process_time
    attention = {"on": llama.LLAMA_FLASH_ATTN_TYPE_ENABLED, "off": llama.LLAMA_FLASH_ATTN_TYPE_DISABLED}[attention]
    best = {}

    def timed(part, count, work):
        begin = now()
        result = work()
        best[part] = max(best.get(part, 0), count / (now() - begin))
        return result

    llama.llama_log_set(say_what_is_wrong, None)
    mtmd.mtmd_log_set(say_what_is_wrong, None)
    llama.llama_backend_init()
    model = need(llama.llama_model_load_from_file(str(folder / "text.gguf").encode(), llama.llama_model_default_params()),
                 "reading the text model")
    looker = Looker(folder / "mmproj.gguf", model, attention)
    count = sum(looker.tokens)
    prompt = count + WORDS
    texts = Texts(model, prompt + 2 * tokens, attention)
    places = places_of(numpy.arange(count))
    words = numpy.random.default_rng(2).standard_normal(WORDS * looker.width).astype(numpy.float32)
    for _ in range(rounds):
        seen = timed("vision", count, looker.look)
        need(numpy.isfinite(seen).all(), "looking")
        x = numpy.concatenate([seen, words])
        texts.forget()
        for text in range(TOGETHER):
            timed("prefill", prompt, lambda: texts.decode([text] * prompt, places, 1, embeddings=x))
        first = PAIRS + WORDS

        def write(number, begin):
            for i in range(tokens):
                texts.decode(range(number), [begin + i] * number, number, token=7 + i)
        timed("decode", tokens, lambda: write(1, first))
        # The first text has become longer than the others.
        llama.llama_memory_seq_rm(llama.llama_get_memory(texts.context), 0, first, -1)
        timed("decode-8", TOGETHER * tokens, lambda: write(TOGETHER, first))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for part, rate in best.items():
        print(f"llama llama.cpp {part} peak {peak} MiB tokens/s {rate:.2f}")


measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
