# Makes scripts/gpu-report's table from records (gpu.h has their form; a later record replaces an
# earlier one of the same name, but an error no value). Every row of the list below appears, measured or not,
# and training steps of other models than that of 7 billion parameters as far as there are records.
# SPDX-License-Identifier: Apache-2.0

function text(key,    at) {
  if (!match($0, "\"" key "\": \"[^\"]*\"")) return ""
  at = RSTART + length(key) + 5
  return substr($0, at, RSTART + RLENGTH - 1 - at)
}
function number(key,    at) {
  if (!match($0, "\"" key "\": [-+0-9.eE]+")) return ""
  at = RSTART + length(key) + 4
  return substr($0, at, RSTART + RLENGTH - at)
}

{
  name = text("bench") "/" text("case") "/" text("impl")
  # What was measured is not lost by what failed after it.
  if (text("error") != "" && value[name] != "") next
  value[name] = number("value")
  error[name] = text("error")
  mfu[name] = number("mfu")
  peak[name] = number("peak_tflops")
  memory[name] = number("memory_gib")
  if (name == "version/torch/torch") torch = "PyTorch " text("text") ", cuDNN " number("cudnn") "."
  order[++count] = name
}

function shown(v) {
  if (v == "") return "-"
  v += 0
  return sprintf(v < 10 ? "%.2f" : v < 100 ? "%.1f" : "%.0f", v)
}
# A row: ours and PyTorch's values in `unit`, the target for ours, and what to say if there is none.
function row(what, ours, theirs, unit, target, why,    reached) {
  reached = "-"
  if (target != "") reached = ours == "" ? "**no figure**" : (ours + 0 >= target + 0 ? "yes" : "**no**")
  if (ours == "" && why == "") why = "not measured"
  printf "| %s | %s | %s | %s | %s | %s | %s |\n", what, shown(ours), shown(theirs), unit,
    target == "" ? "-" : target, reached, why
}
function plain(what, bench, name, impl, unit, target,    ours) {
  ours = bench "/" name "/" impl
  row(what, value[ours], value[bench "/" name "/torch"], unit, target, error[ours])
}
function percent(a, b) { return a == "" || b == "" || b == 0 ? "" : 100 * a / b }
function bandwidth(name, target,    ours, copied) {
  ours = "memory/" name "/vfm"
  copied = value["memory/copy/vfm"]
  row(name, percent(value[ours], copied), percent(value["memory/" name "/torch"], copied), "% of copy", target,
      value[ours] == "" ? error[ours] : shown(value[ours]) " GB/s")
}
function note(name) {
  return value[name] == "" ? error[name] : sprintf("%.1f %% MFU, %.1f GiB", 100 * mfu[name], memory[name])
}

# A training step; PyTorch's is the same whatever we recompute.
function step(name, what,    theirs) {
  theirs = name
  sub(/ .*/, "", theirs)
  printed[name] = 1
  row(what, value["train/" name "/vfm"], value["train/" theirs "/torch"], "tokens/s", "", note("train/" name "/vfm"))
}

# The name of the model's fastest step; "" if none was measured.
function fastest(model,    i, best) {
  for (i = 1; i <= count; ++i)
    if (index(order[i], "train/" model " ") == 1 && order[i] ~ /vfm$/ && value[order[i]] + 0 > value[best] + 0)
      best = order[i]
  return best
}

END {
  print "| what | vfm | PyTorch | unit | target | reached | note |"
  print "|---|---:|---:|---|---:|---|---|"
  plain("copy on the GPU, read and written", "memory", "copy", "vfm", "GB/s", "")
  plain("copy from the host to the GPU", "memory", "copy to the GPU", "vfm", "GB/s", "")
  plain("of it hidden beside kernels", "memory", "copy beside kernels", "vfm", "%", "")
  bandwidth("modulate forward", 85)
  bandwidth("modulate backward", 85)
  bandwidth("qk_norm_rope forward", 85)
  bandwidth("qk_norm_rope backward", 85)
  bandwidth("gelu forward", 85)
  bandwidth("gelu backward", 85)
  bandwidth("adamw f32", 85)
  bandwidth("adamw split, bf16 moments", 85)
  split("8192 16384 32768", lengths, " ")
  for (i = 1; i <= 3; ++i) {
    plain("attention forward, own kernel, " lengths[i], "attention", "forward " lengths[i], "own", "TFLOP/s", 330)
    plain("attention backward, own kernel, " lengths[i], "attention", "backward " lengths[i], "own", "TFLOP/s", 280)
    plain("attention forward, cuDNN, " lengths[i], "attention", "forward " lengths[i], "cudnn", "TFLOP/s", 650)
    plain("attention backward, cuDNN, " lengths[i], "attention", "backward " lengths[i], "cudnn", "TFLOP/s", 550)
  }
  layers = split("4096 -> 12288,4096 -> 4096,4096 -> 16384,16384 -> 4096", layer, ",")
  split("forward dgrad wgrad", pass, " ")
  for (i = 1; i <= layers; ++i)
    for (j = 1; j <= 3; ++j)
      plain("product " layer[i] ", " pass[j], "gemm", layer[i] " " pass[j], "vfm", "TFLOP/s", "")
  plain("all twelve products", "gemm", "average", "vfm", "TFLOP/s", 680)
  convs = split("3x3; 128 channels,3x3; 512 channels,in time; 256 channels", conv, ",")
  for (i = 1; i <= convs; ++i) {
    sub(/;/, ",", conv[i])
    for (j = 1; j <= 3; ++j) {
      plain("convolution " conv[i] ", " pass[j], "video", conv[i] " " pass[j], "vfm", "TFLOP/s", "")
      if (pass[j] != "wgrad") # always our own
        plain("the same, own kernels", "video", conv[i] " " pass[j], "own", "TFLOP/s", "")
    }
  }
  plain("norm of frames and SiLU, forward", "video", "norm and silu forward", "vfm", "GB/s", "")
  plain("the same, forward and backward", "video", "norm and silu, forward and backward", "vfm", "GB/s", "")
  plain("attention in a frame, 14,080 pixels of 512", "video", "attention in a frame forward", "vfm", "TFLOP/s", "")
  split("encode decode", way, " ")
  for (i = 1; i <= 2; ++i) {
    plain("tokenizer CV8x8x8, " way[i] ", 121 frames of 704 x 1,280", "video", "tokenizer " way[i], "vfm", "s", "")
    plain("the same, convolutions by own kernels", "video", "tokenizer " way[i], "own", "s", "")
  }
  split("bf16,fp8 all", kind, ",")
  for (i = 1; i <= 2; ++i) {
    ours = "forward/7b-world " kind[i] "/vfm"
    row("text to world, 7B, 121 frames of 704 x 1,280: a step with guidance, " kind[i], value[ours], "", "s", "",
        note(ours))
  }
  models = split("1.3b-480p 1.3b-720p 14b-480p 14b-720p", model, " ")
  split("12x32760 12x75600 40x32760 40x75600", size, " ")
  for (i = 1; i <= models; ++i) {
    plain("Wan " model[i] ", products forward", "gemm", "wan-" model[i] " average forward", "vfm", "TFLOP/s", "")
    plain("the same backward", "gemm", "wan-" model[i] " average backward", "vfm", "TFLOP/s", "")
    for (j = 1; j <= 4; ++j)
      plain("its attention " (j % 2 ? "forward" : "backward") ", " (j < 3 ? "own kernel" : "cuDNN"), "attention",
            (j % 2 ? "forward " : "backward ") size[i], j < 3 ? "own" : "cudnn", "TFLOP/s", "")
  }
  plain("vfm-pack, 720p to 256 x 256, decoded by software", "decode", "720p to 256", "software", "frames/s", "")
  plain("the same by NVDEC, pictures stay on the GPU", "decode", "720p to 256", "nvdec", "frames/s", "")
  step("7b none", "training step, 7B, 8,192 tokens, nothing recomputed")
  step("7b elementwise", "the same, norms and activations recomputed")
  step("7b elementwise graph", "the same as a CUDA graph")
  step("7b elementwise graph, 8 packs", "the same, steps of 8 packs")
  best = fastest("7b")
  theirs = value["train/7b/torch"]
  row("the best of these", value[best], theirs, "tokens/s", 11500, value[best] == "" ? "" : note(best))
  ratio = value[best] == "" || theirs == "" ? "" : value[best] / theirs
  if (theirs == "") {
    why = error["train/7b/torch"]
    row("the best of these over PyTorch", "", "", "ratio", "", why == "" ? "no PyTorch" : why)
  } else {
    why = sprintf("PyTorch: %.1f GiB", memory["train/7b/torch"])
    row("the best of these over PyTorch", ratio, 1, "ratio", 1.15, why)
  }
  long = fastest("7b-74k")
  if (long == "") long = "train/7b-74k block/vfm"
  step("7b-74k block", "training step, 7B, 73,728 tokens, blocks recomputed")
  row("MFU at 73,728 tokens", mfu[long] == "" ? "" : 100 * mfu[long], "", "%", 45,
      value[long] == "" ? error[long] : "of " shown(peak[long]) " TFLOP/s")
  # What took the place of that which did not fit, and what else was run.
  for (i = 1; i <= count; ++i)
    if (order[i] ~ /^train\/.*\/vfm$/) {
      what = substr(order[i], 7, length(order[i]) - 10)
      if (!(what in printed)) step(what, "training step, " what)
    }
  rates = split("products;products in FP8;products in f32;attention forward;attention backward;" \
    "attention forward, own kernel;attention backward, own kernel;attention in FP8;convolutions;" \
    "convolutions, own kernels;memory;copies to the host;gap between kernels;apart from their times", rate, ";")
  for (i = 1; i <= rates; ++i) {
    unit = i <= 10 ? "TFLOP/s" : i <= 12 ? "GB/s" : i == 13 ? "us" : "%"
    plain("rate fitted as by calibrate: " rate[i], "rates", rate[i], "vfm", unit, "")
  }
  print ""
  print "Bytes and operations are those that the mathematics needs: each array read and written once, attention"
  print "4 s^2 h d forward and 2.5 times that backward. MFU counts the work done for each token, forward and"
  print "backward, without what is computed again, against the data sheet of the GPU (dense bf16)."
  if (torch != "") print torch
}
