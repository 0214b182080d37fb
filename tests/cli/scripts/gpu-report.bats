#!/usr/bin/env bats
# scripts/gpu-report on a machine that has no GPU: nvidia-smi, nvcc, Meson, ninja, compute-sanitizer and the
# tests of kernels are stand-ins, the benchmarks are the real programs, which are rehearsed
# (tests/bench/rehearsal.h). So every command line of the script is read by the program that it is for.
# SPDX-License-Identifier: Apache-2.0

# bats file_tags=night

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  here=$PWD
  export VFM_ROOT VFM_BUILD here
}

# program FILE: an executable script; its text is on standard input.
program() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/bin/bash'; cat; } >"$1"
  chmod +x "$1"
}

# A GPU and what builds for it, as far as the script can see.
stand_ins() {
  if [ -e /dev/nvidia0 ]; then skip "there is a GPU"; fi
  [ -x "${VFM_BUILD:?}/tests/bench/gpu_video" ] || skip "the benchmarks of GPUs are not built"
  mkdir -p toolkit/include out
  touch toolkit/include/cublasLt.h
  program toolkit/bin/nvidia-smi <<'END'
case $* in
  -L) echo "GPU 0: a stand-in" ;;
  *=compute_cap*) echo 9.0 ;;
  *=compute_mode*) echo "${MODE:-Default}" ;;
  --query-gpu=name\ * | --query-gpu=driver_version\ * | --query-gpu=memory.total\ *) echo "a stand-in" ;;
  *) exit 9 ;;
esac
END
  program toolkit/bin/nvcc <<'END'
[ "$*" = --version ] && echo "release 13.0, V13.0.88"
END
  program toolkit/bin/meson <<'END'
[ "$1" = setup ] || exit 9
build=$2
shift 2
for option; do
  case $option in
    --reconfigure | --buildtype=release) ;;
    -D*) name=${option%%=*}; grep -q "^option('${name#-D}'" "$VFM_ROOT/meson_options.txt" || exit 9 ;;
    *) exit 9 ;;
  esac
done
mkdir -p "$build"/tests/{bench,kernels}
touch "$build/build.ninja"
for name in train_step dit_forward gpu_memory gpu_gemm gpu_attention gpu_rates gpu_video; do ln -sf "$here/bench" "$build/tests/bench/$name"; done
for name in attention columns gelu softmax rows model video; do ln -sf "$here/kernel" "$build/tests/kernels/${name}_test"; done
END
  program toolkit/bin/ninja <<'END'
[ "$1 $3" = "-C -j" ] && [ $# -eq 5 ] && [ -z "$BROKEN" ] && grep -q "^build $5:" "$VFM_BUILD/build.ninja"
END
  program toolkit/bin/compute-sanitizer <<'END'
[[ $* =~ ^--tool\ (memcheck|racecheck)( --error-exitcode 86( --report-api-errors no)?)?\ [^ ]*_test$ ]] || exit 9
exec "${@: -1}"
END
  # What takes long, if it is asked to, and says when it has begun.
  program bench <<'END'
name=$(basename "$0")
echo "$name $*" >>"$here/calls"
export VFM_REHEARSAL=${GIB:-139}
"$VFM_BUILD/tests/bench/$name" "$@" || exit
[ "$SLOW" != "$name" ] || { printf '{"bench": "half a'; sleep 61.5; }
END
  program kernel <<'END'
case $VFM_KERNEL_TESTS in untimed | small | '') ;; *) exit 9 ;; esac
echo "$(basename "$0")" >>"$here/calls"
[ -z "$SLOW" ] || exec sleep 61.5
mkdir "$here/busy" 2>/dev/null || { touch "$here/two-at-once"; exit 0; }
sleep 0.1
rmdir "$here/busy"
END
  program python <<'END'
case $1 in
  -c) [[ $2 != *find_spec* ]] ;;
  -m) case $2 in mesonbuild.mesonmain) tool=meson ;; ninja) tool=ninja ;; *) exit 9 ;; esac
    [ "$3" = --version ] || { echo "module $tool" >>"$here/calls"; shift 2; exec "$here/toolkit/bin/$tool" "$@"; } ;;
  *) echo "python $*" >>"$here/calls"; VFM_REHEARSAL=1 exec python3 "$@" ;;
esac
END
  export TORCH_PYTHON=$here/python PATH=$here/toolkit/bin:$PATH OUT=$here/out
}
gpu_report() { "${VFM_ROOT:?}/scripts/gpu-report" --build "$here/build" "$@"; }

@test "gpu-report: every command line is one that its program reads, and every row has a record" {
  stand_ins
  run gpu_report
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"all is done; 0 failed"* ]]
  # Nothing was measured, so the best is of nothing; all else was rehearsed or does not fit.
  grep '^| ' out/gpu-report.md | grep 'not measured' >missing
  cat missing
  [ "$(wc -l <missing)" -eq 1 ]
  grep -q '^| the best of these |' missing
  cmp out/gpu-report.md build/report/table.md
  grep -qF 'GPU: a stand-in, a stand-in, compute mode Default; driver a stand-in; CUDA 13.0' out/gpu-report.md
  cmp out/records.jsonl build/report/records.jsonl
  # No FFmpeg with NVDEC and a driver for it is in the rehearsal: it says so, once a way.
  grep -qE '^\| decode \| done .* \| 0 \| 1 \|  \|  \|$' out/gpu-report.md
  [[ $output == *"skip decode: gpu_decode.sh: the NVIDIA driver lacks libnvcuvid.so.1: install "*NVIDIA_DRIVER_CAPABILITIES* ]]
  for phase in build test bench train video sanitize torch; do grep -qE "^\| $phase \| done .* \| 0 \|  \|  \|$" out/gpu-report.md; done
  # What is done is not done again, but if it is named.
  : >calls
  run gpu_report
  [ "$status" -eq 0 ]
  [ ! -s calls ]
  run gpu_report --only test,bench
  [ "$status" -eq 0 ]
  grep -q '^gpu_memory ' calls
  grep -q '^softmax_test' calls
  run grep -E 'train_step|gpu_video' calls
  [ "$status" -eq 1 ]
}

@test "gpu-report: an option that is misspelt fails in the rehearsal" {
  stand_ins
  mkdir scripts tests
  sed 's/--packs 8/--pack 8/; s/wan-14b-720p$/wan-14b-721p/; s/ --fp8 all/ --fp8 al/' \
    "${VFM_ROOT:?}/scripts/gpu-report" >scripts/gpu-report
  ln -s "$VFM_ROOT/tests/bench" tests/bench
  run bash scripts/gpu-report --build "$here/build" --only train,video
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"FAIL 8k (exit status 2)"*"there is no option --pack"* ]]
  [[ $output == *"FAIL wan-gemm (exit status 2)"* ]]
  [[ $output == *"FAIL generation (exit status 2)"* ]]
  grep -qE '^\| train \| done .* \| \*\*8k\*\* \|$' out/gpu-report.md
}

@test "gpu-report: where 7 billion parameters do not fit, the largest that do take their place" {
  stand_ins
  GIB=78.5 run gpu_report --only train
  echo "$output"
  [ "$status" -eq 0 ]
  grep -qE 'norms and activations recomputed \|.*it would need 12[0-9.]+ GiB, there are 78.5 \|' out/gpu-report.md
  grep -qF '| training step, 4b block_but_attention graph, 8 packs | - | - | tokens/s | - | - | a rehearsal |' out/gpu-report.md
  grep -qF '| training step, 4b-37k block_but_attention | - | - | tokens/s | - | - | a rehearsal |' out/gpu-report.md
  [[ $output == *"not done: test bench video decode sanitize torch; 0 failed"* ]]
  # PyTorch then trains the model that was measured first.
  cat >>build/report/records.jsonl <<'JSON'
{"bench": "train", "case": "4b block_but_attention", "impl": "vfm", "value": 15000, "unit": "tokens/s"}
{"bench": "train", "case": "4b-37k block", "impl": "vfm", "value": 9000, "unit": "tokens/s"}
{"bench": "train", "case": "2b none", "impl": "vfm", "value": 30000, "unit": "tokens/s"}
JSON
  run gpu_report --only torch
  [ "$status" -eq 0 ]
  grep -q '^python tests/bench/train_step_torch.py 4b bf16 compile 4 ' calls
}

# SIGTERM for $script, which ends soon, and with it all that it runs.
stop_script() {
  local begin=$SECONDS
  kill -TERM "$script"
  status=0
  wait "$script" || status=$?
  cat log
  [ "$status" -eq 143 ]
  [ $((SECONDS - begin)) -lt 20 ]
  run pgrep -f "$here/build/tests|^sleep 61[.]5$"
  [ "$status" -eq 1 ]
}

@test "gpu-report: SIGTERM also ends tests that run beside each other" {
  stand_ins
  SLOW=tests "${VFM_ROOT:?}/scripts/gpu-report" --build "$here/build" --only test >log 2>&1 &
  script=$!
  for ((i = 0; i < 200; ++i)); do
    if [ "$(grep -c _test calls 2>/dev/null)" -ge 5 ]; then break; fi
    sleep 0.1
  done
  stop_script
  grep -q '^| test | not whole | 0 |' out/gpu-report.md
}

@test "gpu-report: SIGTERM ends it with the table so far, and the next call goes on" {
  stand_ins
  SLOW=gpu_gemm "${VFM_ROOT:?}/scripts/gpu-report" --build "$here/build" --only bench >log 2>&1 &
  script=$!
  for ((i = 0; i < 200; ++i)); do
    if grep -q 'half a' build/report/records.jsonl 2>/dev/null; then break; fi
    sleep 0.1
  done
  stop_script
  grep -q 'stopped by SIGTERM' log
  grep -qF '| copy on the GPU, read and written | - | - | GB/s | - | - | a rehearsal |' out/gpu-report.md
  grep -q '^| bench | not whole | 1 |' out/gpu-report.md
  : >calls
  run gpu_report --only bench
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(cut -d ' ' -f 1 calls | tr '\n' ' ')" = "gpu_gemm gpu_attention gpu_rates " ]
  grep -q '^| bench | done .* | 4 |' out/gpu-report.md
  # Half a line is one of its own, and what follows it is whole.
  [ "$(grep -c 'half a' build/report/records.jsonl)" -eq 1 ]
  grep -qx '{"bench": "half a' build/report/records.jsonl
}

@test "gpu-report: what takes too long is cut, and the table comes in time" {
  stand_ins
  SLOW=gpu_memory run gpu_report --only bench --seconds 15
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"cut  attention: not finished in its time"*"cut  memory: not finished in its time"* ]]
  grep -q '^| bench | not whole | 0 | 0 | attention gemm memory rates |' out/gpu-report.md
}

@test "gpu-report: on a GPU in exclusive mode one program runs at a time" {
  stand_ins
  run gpu_report --only test,sanitize
  [ "$status" -eq 0 ]
  [ -e two-at-once ] # else this says nothing
  rm two-at-once
  MODE=Exclusive_Process run gpu_report --only test,sanitize
  echo "$output"
  [ "$status" -eq 0 ]
  [ ! -e two-at-once ]
  grep -q 'compute mode Exclusive_Process' out/gpu-report.md
}

@test "gpu-report: Meson and ninja may be Python packages that are in no PATH" {
  stand_ins
  mkdir bin
  ln -s /usr/bin/* bin/
  rm -f bin/meson bin/ninja bin/ninja-build
  mkdir tools
  mv toolkit/bin/{meson,ninja} tools/
  sed -i "s#toolkit/bin/#tools/#" python
  PATH=$here/toolkit/bin:$here/bin run gpu_report --only build
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(tr '\n' ' ' <calls)" = "module meson module ninja " ]
}

@test "gpu-report: a build that fails is said, and wrong arguments are refused" {
  stand_ins
  BROKEN=1 run gpu_report
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"FAIL ninja"*"the build failed"* ]]
  grep -q '^| build | not whole | 1 | 0 |  | \*\*ninja\*\* |' out/gpu-report.md
  for wrong in "--only tests" "--only" "--seconds 0" "--seconds x" "--quick"; do
    # shellcheck disable=SC2086
    run gpu_report $wrong
    echo "$wrong: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"usage: scripts/gpu-report"* ]]
  done
  OUT=$here/none run gpu_report --only build
  [ "$status" -eq 0 ]
  [[ $output == *"is no folder: nothing is put there"* ]]
}

@test "gpu-report says when there is no GPU, and refuses unknown options" {
  if [ -e /dev/nvidia0 ]; then skip "there is a GPU"; fi
  run "${VFM_ROOT:?}/scripts/gpu-report" --build "$PWD/report"
  [ "$status" -eq 77 ]
  [[ $output == *"no NVIDIA GPU"* ]]
  [ ! -e report ]
  run "${VFM_ROOT:?}/scripts/gpu-report" --fast
  [ "$status" -eq 2 ]
  [[ $output == *"unknown option '--fast'"* ]]
}

@test "gpu-report names the header that is missing" {
  if [ -e /dev/nvidia0 ]; then skip "there is a GPU"; fi
  mkdir -p toolkit/bin
  printf '#!/bin/sh\necho "GPU 0: one that is not there"\n' >toolkit/bin/nvidia-smi
  for tool in nvcc meson ninja; do printf '#!/bin/sh\nexit 1\n' >toolkit/bin/$tool; done
  chmod +x toolkit/bin/*
  # No header is found but those of the toolkit, which has none.
  printf '#!/bin/sh\nexec /usr/bin/c++ -nostdinc "$@"\n' >cxx
  chmod +x cxx
  CXX=$PWD/cxx TORCH_PYTHON=$PWD/missing PATH=$PWD/toolkit/bin:$PATH \
    run "${VFM_ROOT:?}/scripts/gpu-report" --build "$PWD/report"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"the header cublasLt.h is neither in '$PWD/toolkit/include' nor in PyTorch's packages"* ]]
  [ ! -e report ]
}

@test "the report's table has every target, measured or not" {
  cat >records.jsonl <<'JSON'
{"bench": "memory", "case": "copy", "impl": "vfm", "value": 4000, "unit": "GB/s"}
{"bench": "memory", "case": "gelu forward", "impl": "vfm", "value": 3600, "unit": "GB/s"}
{"bench": "memory", "case": "gelu backward", "impl": "vfm", "value": 2000, "unit": "GB/s"}
{"bench": "memory", "case": "gelu forward", "impl": "torch", "value": 3000, "unit": "GB/s"}
{"bench": "attention", "case": "forward 8192", "impl": "own", "value": 341.5, "unit": "TFLOP/s", "ms": 3.2}
{"bench": "attention", "case": "forward 8192", "impl": "cudnn", "error": "this build has none"}
{"bench": "gemm", "case": "average", "impl": "vfm", "value": 701, "unit": "TFLOP/s"}
{"bench": "train", "case": "7b none", "impl": "vfm", "error": "no memory"}
{"bench": "train", "case": "7b elementwise", "impl": "vfm", "value": 12000, "unit": "tokens/s", "ms": 683, "mfu": 0.62, "peak_tflops": 989.5, "memory_gib": 121}
{"bench": "train", "case": "7b elementwise graph", "impl": "vfm", "value": 12500, "unit": "tokens/s", "ms": 655, "mfu": 0.645, "peak_tflops": 989.5, "memory_gib": 122}
{"bench": "train", "case": "7b elementwise graph", "impl": "vfm", "error": "no memory for a second time"}
{"bench": "memory", "case": "copy beside kernels", "impl": "vfm", "value": 93.5, "unit": "%"}
{"bench": "train", "case": "7b", "impl": "torch", "value": 10000, "unit": "tokens/s", "ms": 820, "memory_gib": 110}
{"bench": "train", "case": "7b elementwise graph, 8 packs", "impl": "vfm", "value": 12400, "unit": "tokens/s", "mfu": 0.64, "peak_tflops": 989.5, "memory_gib": 122}
{"bench": "train", "case": "4b block", "impl": "vfm", "value": 20000, "unit": "tokens/s", "mfu": 0.5, "peak_tflops": 989.5, "memory_gib": 51}
{"bench": "train", "case": "4b", "impl": "torch", "value": 15000, "unit": "tokens/s"}
{"bench": "forward", "case": "7b-world bf16", "impl": "vfm", "value": 7.25, "unit": "s", "mfu": 0.61, "memory_gib": 41}
{"bench": "video", "case": "3x3, 128 channels forward", "impl": "own", "value": 210, "unit": "TFLOP/s"}
{"bench": "rates", "case": "attention forward, own kernel", "impl": "vfm", "value": 318.2, "unit": "TFLOP/s"}
{"bench": "rates", "case": "gap between kernels", "impl": "vfm", "value": 2.1, "unit": "us"}
{"bench": "decode", "case": "720p to 256", "impl": "software", "value": 640, "unit": "frames/s"}
{"bench": "decode", "case": "720p to 256", "impl": "nvdec", "error": "the NVIDIA driver lacks libnvcuvid.so.1"}
JSON
  awk -f "${VFM_ROOT:?}/tests/bench/gpu_table.awk" records.jsonl >table
  cat table
  grep -qF '| vfm-pack, 720p to 256 x 256, decoded by software | 640 | - | frames/s | - | - |  |' table
  grep -qF '| the same by NVDEC, pictures stay on the GPU | - | - | frames/s | - | - | the NVIDIA driver lacks libnvcuvid.so.1 |' table
  grep -qF '| gelu forward | 90.0 | 75.0 | % of copy | 85 | yes | 3600 GB/s |' table
  grep -qF '| gelu backward | 50.0 | - | % of copy | 85 | **no** | 2000 GB/s |' table
  grep -qF '| attention forward, own kernel, 8192 | 342 | - | TFLOP/s | 330 | yes |  |' table
  grep -qF '| attention forward, cuDNN, 8192 | - | - | TFLOP/s | 650 | **no figure** | this build has none |' table
  grep -qF '| all twelve products | 701 | - | TFLOP/s | 680 | yes |  |' table
  grep -qF '| training step, 7B, 8,192 tokens, nothing recomputed | - | 10000 | tokens/s | - | - | no memory |' table
  grep -qF '| the same as a CUDA graph | 12500 | 10000 | tokens/s | - | - | 64.5 % MFU, 122.0 GiB |' table
  grep -qF '| the best of these | 12500 | 10000 | tokens/s | 11500 | yes | 64.5 % MFU, 122.0 GiB |' table
  grep -qF '| of it hidden beside kernels | 93.5 | - | % | - | - |  |' table
  grep -qF '| the best of these over PyTorch | 1.25 | 1.00 | ratio | 1.15 | yes | PyTorch: 110.0 GiB |' table
  grep -qF '| MFU at 73,728 tokens | - | - | % | 45 | **no figure** | not measured |' table
  grep -qF '| the same, steps of 8 packs | 12400 | 10000 | tokens/s | - | - | 64.0 % MFU, 122.0 GiB |' table
  grep -qF '| training step, 4b block | 20000 | 15000 | tokens/s | - | - | 50.0 % MFU, 51.0 GiB |' table
  grep -qF '| text to world, 7B, 121 frames of 704 x 1,280: a step with guidance, bf16 | 7.25 | - | s | - | - | 61.0 % MFU, 41.0 GiB |' table
  grep -qF '| the same, own kernels | 210 | - | TFLOP/s | - | - |  |' table
  grep -qF '| rate fitted as by calibrate: attention forward, own kernel | 318 | - | TFLOP/s | - | - |  |' table
  grep -qF '| rate fitted as by calibrate: gap between kernels | 2.10 | - | us | - | - |  |' table
  grep -qF '| rate fitted as by calibrate: memory | - | - | GB/s | - | - | not measured |' table
  [ "$(grep -c '^|' table)" -eq 111 ]
}
