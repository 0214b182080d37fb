// vfm-embed: adds vectors to shards, and searches by them.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cards/pictures.h"
#include "cards/texts.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "columns/embed.h"
#include "columns/index.h"
#include "columns/index_search.h"
#include "columns/search.h"
#include "curate/inverted_file.h"
#include "device_engines.h"
#include "device_workers.h"
#include "media/isolated.h"
#include "media/version.h"
#include "models/text_encoder.h"
#include "shard_estimate.h"
#include "tensor/device.h"

namespace {

class EmbedTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-embed"; }
  std::string description() const override {
    return "Adds video and text embeddings to the samples of shards, or searches them.";
  }
  std::string example() const override {
    return "vfm-embed --search 'a red circle' --top 5 clips/*.tar";
  }

  std::string version_details() const override {
    const std::string faiss = vfm::curate::faiss_version();
    return vfm::media::ffmpeg_version() + (faiss.empty() ? "" : faiss + "\n");
  }

  void add_options(CLI::App& app) override {
    columns_.add(app);
    app.add_option("--video", video_, "how clips become vectors")
        ->type_name("builtin:look|DIR|none")
        ->check(vfm::cli::not_empty)
        ->capture_default_str();
    app.add_option("--video-frames", embed_.frames, "of a clip, that the model of --video DIR sees")
        ->type_name("N")
        ->check(CLI::Range(1, vfm::columns::kMostClipFrames))
        ->capture_default_str();
    app.add_option("--windows", embed_.window_seconds,
                   "also make vectors of parts of clips, so long at most, with --video DIR")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.1, 86400.0));
    app.add_option("--aesthetic", embed_.scores.aesthetic,
                   "score clips by LAION's aesthetic head in a file, with a CLIP in --video DIR")
        ->type_name("FILE")
        ->check(vfm::cli::not_empty);
    app.add_flag("--text-image", embed_.scores.text_image,
                 "say how well captions fit, with a CLIP or SigLIP in --video DIR");
    app.add_option("--concept", concepts_,
                   "say how well NAME's prompt fits clips, with a CLIP or SigLIP in --video DIR")
        ->type_name("NAME=PROMPT")
        ->check(vfm::cli::not_blank)
        ->allow_extra_args(false);
    app.add_option("--text", text_,
                   "how captions become vectors; given, a shard without captions is an error")
        ->type_name("builtin:hash|DIR|none")
        ->check(vfm::cli::not_empty)
        ->default_str("builtin:hash where there are captions");
    app.add_option("--text-dim", text_dim_, "width of a token's vector of builtin:hash")
        ->type_name("N")
        ->check(CLI::Range(8, 8192))
        ->capture_default_str();
    app.add_option("--text-tokens", text_tokens_, "tokens of a caption, at most; the rest is cut")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--text-prompt", text_prompt_, "goes before captions of --text DIR")
        ->type_name("TEXT")
        ->default_str("what DIR has for documents");
    app.add_option("--query-prompt", query_prompt_,
                   "goes before a text that is searched for by --text DIR's model")
        ->type_name("TEXT")
        ->default_str("what DIR has for queries");
    device_.add(app);
    devices_.add(app);
    app.add_option("--compute", compute_, "of an encoder in DIR; auto: f32, bf16 on a GPU")
        ->type_name("DTYPE")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->capture_default_str();
    vfm::cli::add_dry_run(app, dry_run_);
    search_option_ =
        app.add_option("--search", search_.query,
                       "add nothing; print the samples nearest to a text, a video or a picture")
            ->type_name("TEXT|FILE");
    for (const char* score :
         {"--windows", "--aesthetic", "--text-image", "--concept", "--devices", "--text-prompt"})
      app.get_option(score)->excludes(search_option_);
    app.add_option("--top", search_.top, "how many samples --search prints")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000))
        ->needs(search_option_)
        ->capture_default_str();
    index_option_ =
        app.add_option(
               "--index", index_.path,
               "add nothing to shards, but them to this index of vectors; with --search: search it")
            ->type_name("FILE")
            ->check(vfm::cli::not_empty);
    vectors_option_ = app.add_option("--vectors", vectors_, "which of a sample --index is of")
                          ->type_name("video|text")
                          ->check(CLI::IsMember({"video", "text"}))
                          ->needs(index_option_)
                          ->capture_default_str();
    app.add_flag("--exact", search_.exact, "compare all vectors of the index, from the shards")
        ->needs(index_option_)
        ->needs(search_option_);
    app_ = &app;
  }

  void check() override {
    columns_.input_limits.check_isolation(columns_.hwaccel);
    if (video_ == "none" && text_ == "none")
      vfm::fail_usage("--video none and --text none leave nothing to do");
    if (dry_run_ && search_option_->count() > 0)
      vfm::fail_usage("--dry-run tells how long embeddings take; leave out --search");
    embed_.scores.concepts = vfm::columns::parse_concepts(concepts_);
    const bool by_model = video_ != "builtin:look" && video_ != "none";
    if (embed_.window_seconds > 0 && !by_model)
      vfm::fail_usage("--windows asks for vectors of a model: name its folder with --video DIR");
    if (embed_.scores.any() && !by_model)
      vfm::fail_usage(
          "--aesthetic, --text-image and --concept ask for vectors of a model: name its folder "
          "with --video DIR");
    if (!devices_.devices.empty() && !by_model && !text_by_model())
      vfm::fail_usage("--devices is about a model: name its folder with --video DIR or --text DIR");
    const bool search = search_option_->count() > 0, index = index_option_->count() > 0;
    if (!search && !index && (text_prompt_ || query_prompt_) && !text_by_model())
      vfm::fail_usage("--text-prompt and --query-prompt are about a model: name it by --text DIR");
    if (search && search_.query.empty()) vfm::fail_usage("the text to search for has no words");
    if (index) vfm::curate::need_faiss();
    if (search && index && (!columns_.input.inputs.empty() || vectors_option_->count() > 0))
      vfm::fail_usage(
          "--search with --index searches what is in the index; leave out shards and --vectors");
    if (search && !index && vfm::columns::is_vectors_file(search_.query))
      vfm::fail_usage("vectors of a file are searched for in an index; name it by --index");
    if (index && !search) refuse_with_index();
    devices_.cards();
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override {
    return vfm::media::fork_isolation(columns_.input_limits.limits.isolate);
  }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_card(int channel) override {
    return vfm::cards::serve_card(
        channel, vfm::cards::stage_services({{vfm::cards::kPictures, vfm::cards::open_pictures},
                                             {vfm::cards::kTexts, vfm::cards::open_texts}}));
  }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    vfm::media::begin_isolation();
    embed_.hardware = search_.hardware = engines_.decoder(columns_.hwaccel);
    embed_.limits.member = search_.limits.member = columns_.member.bytes;
    vfm::Slots slots = context.slots(columns_.jobs);
    search_.query_prompt = query_prompt_;
    if (index_option_->count() > 0) return run_index(slots, context);
    if (search_option_->count() > 0) {
      search_.inputs = columns_.input.resolved();
      return vfm::columns::search(search_, slots, context.progress, context.manifest);
    }
    embed_.inputs = columns_.input.resolved();
    embed_.directory = columns_.output.directory;
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
  void refuse_with_index() const {
    for (const char* name : {"--output", "--video", "--video-frames", "--text", "--text-dim",
                             "--text-tokens", "--dry-run", "--aesthetic", "--text-image",
                             "--concept", "--devices", "--text-prompt", "--query-prompt"})
      if (app_->get_option(name)->count() > 0)
        vfm::fail_usage("--index takes the vectors that are there; leave out {}", name);
  }

  long run_index(vfm::Slots& slots, vfm::cli::Context& context) {
    if (search_option_->count() > 0) {
      search_.index = index_.path;
      return vfm::columns::search_index(search_, slots, context.progress, context.manifest);
    }
    index_.inputs = columns_.input.resolved();
    index_.kind =
        vectors_ == "text" ? vfm::columns::VectorKind::text : vfm::columns::VectorKind::video;
    index_.force = columns_.output.force;
    index_.limits.member = columns_.member.bytes;
    return vfm::columns::build_index(index_, slots, context.progress, context.manifest);
  }

  bool text_by_model() const {
    return !text_.empty() && text_ != "none" && text_ != "builtin:hash";
  }

  void choose_encoders() {
    embed_.text_encoder = {.name = "builtin:hash", .dim = text_dim_, .max_tokens = text_tokens_};
    const bool text = text_by_model();
    const bool video = video_ != "none" && video_ != "builtin:look";
    if (!text && !video) return;
    workers_ = workers_of(devices_, columns_.jobs, name());
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
  std::string video_ = "builtin:look", text_;
  std::optional<std::string> text_prompt_, query_prompt_;
  std::vector<std::string> concepts_;
  int text_dim_ = 64, text_tokens_ = 512;
  vfm::cli::DeviceOptions device_;
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, columns_.jobs, "vfm-embed"};
  std::unique_ptr<vfm::cards::StageModels> workers_;  // of these
  std::string compute_ = "auto";
  const CLI::App* app_ = nullptr;
  CLI::Option *search_option_ = nullptr, *index_option_ = nullptr, *vectors_option_ = nullptr;
  std::string vectors_ = "video";
  vfm::columns::IndexOptions index_;
  vfm::columns::EmbedOptions embed_;
  vfm::columns::SearchOptions search_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  EmbedTool tool;
  return vfm::cli::run(argc, argv, tool);
}
