// vfm-embed: adds vectors to shards.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "columns/embed/embed.h"
#include "columns/search/inverted_file.h"
#include "device_engines.h"
#include "device_workers.h"
#include "media/isolate/isolated.h"
#include "media/version.h"
#include "models/text_encoder.h"
#include "shard_estimate.h"
#include "shard_parts.h"
#include "tensor/device.h"
#include "verbs.h"
#include "workers/pictures.h"
#include "workers/texts.h"

namespace {

class EmbedTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-embed"; }
  std::string description() const override {
    return "Adds embeddings of clips and captions to the samples of shards.";
  }
  std::string examples() const override {
    return "vfm-clip a.mp4 b.mp4 -o clips | vfm-caption | vfm-embed > embedded.jsonl\n"
           "vfm-embed --video siglip-base-patch16-224 --text none clips/*.tar\n"
           "vfm-embed --video clip-l14 --aesthetic l14.pth clips/*.tar";
  }

  std::string version_details() const override {
    const std::string faiss = vfm::columns::faiss_version();
    return vfm::media::ffmpeg_version() + (faiss.empty() ? "" : faiss + "\n");
  }

  void add_options(vfm::cli::Options& options) override {
    columns_.add(options);
    vfm::cli::add_dry_run(options, dry_run_);
    part_.add(options);
    part_.add_follow(options);
    options.group("Clips");
    options.add("--video", video_, "builtin:look|DIR|none", "encoder of clips")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual("The encoder of clips: *builtin:look*, a model in a folder, or *none*.");
    options.add("--video-frames", embed_.frames, "N", "frames of a clip that the model sees")
        .in(1, vfm::columns::kMostClipFrames)
        .shown("8, or as many as a model of videos was trained with")
        .manual("Number of frames of a clip that the model of *--video* _DIR_ sees, 1 to 64.");
    options
        .add("--windows", embed_.window_seconds, "SECONDS",
             "encode windows of SECONDS too, with --video DIR")
        .in(0.1, 86400)
        .shown("")
        .everyday()
        .manual("Also encode windows of at most _SECONDS_, 0.1 to 86400. Needs *--video* _DIR_.");
    options
        .add("--aesthetic", embed_.scores.aesthetic, "FILE",
             "score clips by LAION's aesthetic head in FILE")
        .check(vfm::cli::not_empty)
        .shown("")
        .everyday()
        .manual(
            "Score clips by this head, a PyTorch checkpoint (.pth) or safetensors. Needs a CLIP in "
            "*--video* _DIR_.");
    options
        .flag("--text-image", embed_.scores.text_image, "score how well captions fit their clips")
        .everyday()
        .manual(
            "Score how well captions fit their clips. Needs a CLIP or SigLIP with both towers and "
            "its tokenizer in *--video* _DIR_. A shard without captions is an error.");
    options.add("--concept", concepts_, "NAME=TEXT|@FILE", "score how well a prompt fits clips")
        .check(vfm::cli::not_blank)
        .repeated()
        .everyday()
        .manual(
            "Score how well a prompt fits clips, as in _watermark='a watermark'_. May be given "
            "several times. _NAME_ has at most 40 characters: a to z, 0 to 9 and \\_. Needs the "
            "same kind of model as *--text-image*.");
    options.group("Captions");
    options.add("--text", text_, "builtin:hash|DIR|none", "encoder of captions")
        .check(vfm::cli::not_empty)
        .shown("builtin:hash if there are captions")
        .everyday()
        .manual(
            "The encoder of captions: *builtin:hash*, a model in a folder, or *none*. If this "
            "option is given, a shard without captions is an error.");
    options.add("--text-dim", text_dim_, "N", "width of a token's vector of builtin:hash")
        .in(8, 8192)
        .manual("Width of a word's vector of *builtin:hash*, 8 to 8192.");
    options
        .add("--text-tokens", text_tokens_, "N",
             "maximum number of tokens of a caption; the "
             "rest is cut")
        .in(1, 1 << 20)
        .manual(
            "The maximum number of tokens of a caption. The rest is cut. A sentence encoder may "
            "take fewer.");
    add_text_option(options, "--text-prompt", text_prompt_,
                    "put TEXT before captions, with --text DIR")
        .manual(
            "Put _TEXT_ before each caption, with a sentence encoder in *--text* _DIR_. A space at "
            "the end of _TEXT_ is kept. _''_ means no prompt. Default: the prompt of _DIR_ for "
            "documents.");
    add_text_option(options, "--query-prompt", query_prompt_,
                    "keep TEXT for queries beside the vectors")
        .manual(
            "Keep _TEXT_ beside the vectors. *vfm-embed search* puts _TEXT_ before a query. "
            "Default: the prompt of _DIR_ for queries.");
    options.group("Models");
    device_.add_workers(options);
    options
        .add("--compute", compute_, "auto|f32|bf16",
             "number format of models; auto: f32, bf16 on a GPU")
        .one_of({"auto", "f32", "bf16"})
        .manual("The number format of models. *auto*: f32 on the CPU, bf16 on a GPU.");
  }

  void check() override {
    columns_.input_limits.check_isolation(columns_.hwaccel);
    check_part(part_, columns_.output.force, dry_run_, "");
    if (video_ == "none" && text_ == "none")
      vfm::fail_usage("--video none and --text none leave nothing to do");
    embed_.scores.concepts = vfm::columns::parse_concepts(concepts_);
    const bool by_model = video_ != "builtin:look" && video_ != "none";
    if (embed_.window_seconds > 0 && !by_model)
      vfm::fail_usage("--windows asks for vectors of a model: name its folder with --video DIR");
    if (embed_.scores.any() && !by_model)
      vfm::fail_usage(
          "--aesthetic, --text-image and --concept ask for vectors of a model: name its folder "
          "with --video DIR");
    if (device_.workers() && !by_model && !text_by_model())
      vfm::fail_usage("--device is about a model: name its folder with --video DIR or --text DIR");
    if ((text_prompt_ || query_prompt_) && !text_by_model())
      vfm::fail_usage("--text-prompt and --query-prompt are about a model: name it by --text DIR");
    device_.gpus();
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override {
    return vfm::media::fork_isolation(columns_.input_limits.limits.isolate);
  }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_gpu(int channel) override {
    return vfm::workers::serve_gpu(
        channel,
        vfm::workers::stage_services({{vfm::workers::kPictures, vfm::workers::open_pictures},
                                      {vfm::workers::kTexts, vfm::workers::open_texts}}));
  }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    vfm::media::begin_isolation();
    embed_.hardware = engines_.decoder(columns_.hwaccel);
    embed_.limits.member = columns_.member.bytes;
    vfm::share::Slots slots = context.slots(columns_.jobs);
    embed_.inputs = columns_.input.resolved();
    embed_.directory = columns_.output.directory;
    part_work_ = part_work("embed", part_, embed_.directory, embed_.inputs,
                           vfm::media::ffmpeg_version(), context.progress);
    embed_.parts = part_work_ ? &*part_work_ : nullptr;
    embed_.force = columns_.output.force;
    embed_.video = video_ != "none";
    embed_.text = text_ != "none";
    embed_.need_text = !text_.empty() && text_ != "none";
    choose_encoders();
    await_workers(slots, workers_.get());
    if (dry_run_) {
      return tell_shard_estimate(embed_.inputs, embed_.directory, slots.threads(),
                                 [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
                                   return vfm::columns::embed(embed_, slots, progress, manifest);
                                 });
    }
    return vfm::columns::embed(embed_, slots, context.progress, context.manifest);
  }

 private:
  bool text_by_model() const {
    return !text_.empty() && text_ != "none" && text_ != "builtin:hash";
  }

  void choose_encoders() {
    embed_.text_encoder = {.name = "builtin:hash", .dim = text_dim_, .max_tokens = text_tokens_};
    const bool text = text_by_model();
    const bool video = video_ != "none" && video_ != "builtin:look";
    if (!text && !video) return;
    workers_ = workers_of(device_, columns_.jobs, name());
    embed_.workers = workers_.get();
    embed_.device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    const bool low =
        compute_ == "bf16" || (compute_ == "auto" && embed_.device == vfm::Device::cuda);
    const vfm::DType compute = low ? vfm::DType::bf16 : vfm::DType::f32;
    if (video) embed_.picture_encoder = video_;
    embed_.picture_compute = compute;
    if (text)
      embed_.text_encoder = vfm::models::searched_encoder_config(text_, text_tokens_, compute,
                                                                 text_prompt_, query_prompt_);
  }

  vfm::cli::ColumnOptions columns_;
  vfm::cli::PartOptions part_;
  std::optional<vfm::shard::PartTask> part_work_;
  std::string video_ = "builtin:look", text_;
  std::optional<std::string> text_prompt_, query_prompt_;
  std::vector<std::string> concepts_;
  int text_dim_ = 64, text_tokens_ = 512;
  vfm::cli::WorkerOptions device_;
  vfm::cli::DeviceEngines engines_{device_, columns_.jobs, "vfm-embed"};
  std::unique_ptr<vfm::workers::StageModels> workers_;
  std::string compute_ = "auto";
  vfm::columns::EmbedOptions embed_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<EmbedTool>},
                        {"search", make_embed_search},
                        {"index", make_embed_index},
                        {"status", make_embed_status}});
}
