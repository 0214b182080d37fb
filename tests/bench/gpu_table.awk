# Makes scripts/gpu-report's table from records (gpu.h has their form; a later record replaces an
# earlier one of the same name, but an error no value). Every row of the list below appears, measured or not.
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
    for (j = 1; j <= 3; ++j)
      plain("convolution " conv[i] ", " pass[j], "video", conv[i] " " pass[j], "vfm", "TFLOP/s", "")
  }
  plain("norm of frames and SiLU, forward", "video", "norm and silu forward", "vfm", "GB/s", "")
  plain("the same, forward and backward", "video", "norm and silu, forward and backward", "vfm", "GB/s", "")
  plain("attention in a frame, 14,080 pixels of 512", "video", "attention in a frame forward", "vfm", "TFLOP/s", "")
  if (quick == "") {
    best = "train/7b none/vfm"
    if (value["train/7b elementwise/vfm"] + 0 > value[best] + 0) best = "train/7b elementwise/vfm"
    if (value["train/7b elementwise graph/vfm"] + 0 > value[best] + 0) best = "train/7b elementwise graph/vfm"
    theirs = value["train/7b/torch"]
    row("training step, 7B, 8,192 tokens, nothing recomputed", value["train/7b none/vfm"], theirs, "tokens/s", "",
        note("train/7b none/vfm"))
    row("the same, norms and activations recomputed", value["train/7b elementwise/vfm"], theirs, "tokens/s", "",
        note("train/7b elementwise/vfm"))
    row("the same as a CUDA graph", value["train/7b elementwise graph/vfm"], "", "tokens/s", "",
        note("train/7b elementwise graph/vfm"))
    row("the best of these", value[best], theirs, "tokens/s", 11500, value[best] == "" ? "" : note(best))
    ratio = value[best] == "" || theirs == "" ? "" : value[best] / theirs
    if (theirs == "") {
      why = error["train/7b/torch"]
      row("the best of these over PyTorch", "", "", "ratio", "", why == "" ? "no PyTorch" : why)
    } else {
      why = sprintf("PyTorch: %.1f GiB", memory["train/7b/torch"])
      row("the best of these over PyTorch", ratio, 1, "ratio", 1.15, why)
    }
    long = "train/7b-74k block/vfm"
    row("training step, 7B, 73,728 tokens, blocks recomputed", value[long], "", "tokens/s", "", note(long))
    half = "train/7b-37k block/vfm"
    if (half in value)
      row("the same, 36,864 tokens", value[half], "", "tokens/s", "", note(half))
    row("MFU at 73,728 tokens", mfu[long] == "" ? "" : 100 * mfu[long], "", "%", 45,
        value[long] == "" ? error[long] : "of " shown(peak[long]) " TFLOP/s")
  }
  print ""
  print "Bytes and operations are those that the mathematics needs: each array read and written once, attention"
  print "4 s^2 h d forward and 2.5 times that backward. MFU counts the work done for each token, forward and"
  print "backward, without what is computed again, against the data sheet of the GPU (dense bf16)."
  if (torch != "") print torch
  for (i = 1; i <= count; ++i)
    if (order[i] ~ /^run\//) {
      what = substr(order[i], 5)
      sub(/ *\/vfm$/, "", what)
      print "Not whole: " what ": " error[order[i]]
    }
}
