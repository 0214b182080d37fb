# The seven programs, each with something to compute, for tests that disturb them.
# SPDX-License-Identifier: Apache-2.0

# prepare_work: for a setup_file. A folder `work` with what each program reads, in the file's folder.
prepare_work() {
  draw_dataset 24
  mkdir work
  vfm-pack --size 64 --frames 17 -o work/latents <shards.jsonl >latents.jsonl
  vfm-train "$root/examples/recipes/quickstart.yaml" train.steps=1 model.num_layers=2 validation.every=0 \
    --data work/latents -o work/model >/dev/null
  cp -r raw work/raw
  mkdir work/tars
  find clips -name '*-?????.tar' -exec cp {} work/tars/ \;
  cp "$root/examples/recipes/quickstart.yaml" work/recipe.yaml
}

# work_of PROGRAM THREADS: sets `command`, which runs in a copy of `work` for a second or less.
work_of() {
  case $1 in
    clip) command=(sh -c 'exec vfm-clip -j"$0" --min-length 1s -o out raw/*.mp4' "$2") ;;
    caption | embed) command=(sh -c 'exec "vfm-$1" -j"$0" tars/*.tar' "$2" "$1") ;;
    shard) command=(sh -c 'exec vfm-shard -j"$0" --keep-duplicates -o out tars/*.tar' "$2") ;;
    pack) command=(sh -c 'exec vfm-pack -j"$0" --size 64 --frames 17 -o out tars/*.tar' "$2") ;;
    train)
      command=(vfm-train recipe.yaml -j"$2" --data latents -o out model.num_layers=2 train.steps=12 validation.every=0)
      ;;
    generate) command=(vfm-generate --model model -j"$2" --steps 20 -o out 'a red circle') ;;
    *) return 1 ;;
  esac
}
