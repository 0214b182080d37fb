// vfm-caption: adds a caption column to shards.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "caption_score_options.h"
#include "cards/captions.h"
#include "cards/pictures.h"
#include "cards/texts.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "cli/secret.h"
#include "columns/caption.h"
#include "columns/caption_costs.h"
#include "columns/score_costs.h"
#include "device_engines.h"
#include "device_workers.h"
#include "io/http.h"
#include "media/isolated.h"
#include "media/version.h"
#include "ops/gpu_options.h"
#include "shard_estimate.h"
#include "tensor/device.h"

namespace {

class CaptionTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-caption"; }
  std::string description() const override {
    return "Adds captions to the samples of shards, as a column beside them.";
  }
  std::string examples() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption > captioned.jsonl";
  }

  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + vfm::io::http_version();
  }

  void add_options(vfm::cli::Options& options) override {
    CLI::App& app = options.app();
    columns_.add(options);
    app.add_option("--from", options_.from,
                   "where captions come from; the first that has one gives it: existing, "
                   "existing:member|field|txt|json|srt, field:NAME, model:DIR, "
                   "builtin:measure, endpoint")
        ->type_name("SOURCE,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->default_str("existing,builtin:measure; with --endpoint: endpoint");
    app.add_option("--sidecars", options_.sidecars,
                   "also read captions beside sources below these folders, which only shards name")
        ->type_name("DIR,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::ExistingDirectory);
    app.add_option("--max-characters", options_.max_characters,
                   "cut longer captions at a word (default: never)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--empty", empty_,
                   "skip: ask the next source instead of taking an empty caption; keep: take it")
        ->type_name("skip|keep")
        ->check(CLI::IsMember({"skip", "keep"}))
        ->capture_default_str();
    report_.add(options, "write a page with clips and their captions");
    vfm::cli::add_dry_run(options, dry_run_);
    add_prompt_options(app);
    add_model_options(options);
    add_refine_options(app);
    add_endpoint_options(options);
    score_.add(options);
  }

  void check() override {
    columns_.input_limits.check_isolation(columns_.hwaccel);
    score_.check(*app_);
    vfm::columns::EndpointOptions& endpoint = options_.endpoint;
    const bool from = app_->count("--from") > 0;
    if (!endpoint.url.empty() && !from) options_.from = {"endpoint"};
    vfm::columns::check_caption_sources(options_.from);
    vfm::columns::check_questions(also_, schemas_);
    const bool used = options_.from.back() == "endpoint";
    check_model_options(used);
    if (used && endpoint.url.empty()) vfm::fail_usage("the source 'endpoint' needs --endpoint URL");
    if (!used && !endpoint.url.empty())
      vfm::fail_usage("--endpoint is given, but --from does not name the source 'endpoint'");
    if (endpoint.send_schema && (!used || schemas_.empty()))
      vfm::fail_usage("--endpoint-schema sends the schemas of --schema to a server: it needs both");
    devices_.cards();
    if (!used) return;
    if (endpoint.model.empty()) vfm::fail_usage("--endpoint needs --endpoint-model NAME");
    if (dry_run_)
      vfm::fail_usage("--dry-run would ask the server, which costs; it cannot be with --endpoint");
    vfm::io::check_http_url(endpoint.url);
    if (!prices_.empty()) {
      endpoint.input_price = prices_[0];
      endpoint.output_price = prices_[1];
    }
    endpoint.secret = vfm::cli::secret_from_environment(key_, app_->count("--endpoint-key") > 0);
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override {
    return vfm::media::fork_isolation(columns_.input_limits.limits.isolate);
  }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_card(int channel) override {
    using namespace vfm::cards;
    return vfm::cards::serve_card(channel, stage_services({{kCaptions, open_captions},
                                                           {kRewriting, open_rewriting},
                                                           {kPictures, open_pictures},
                                                           {kTexts, open_texts}}));
  }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    vfm::media::begin_isolation();
    options_.inputs = columns_.input.resolved();
    options_.directory = columns_.output.directory;
    options_.force = columns_.output.force;
    options_.limits.member = columns_.member.bytes;
    options_.keep_empty = empty_ == "keep";
    options_.report = report_.path;
    options_.hardware = engines_.decoder(columns_.hwaccel);
    set_model_options();
    vfm::Slots slots = context.slots(columns_.jobs);
    if (score_.asked()) return score(slots, context);
    // Samples of a shard wait for cards together; at its end those of the next one do.
    if (workers_) slots.add_away(1), slots.set_flow(workers_->flow());
    if (dry_run_) {
      options_.report.clear();
      vfm::columns::CaptionCosts costs;
      options_.model.costs = &costs;
      const auto work = [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
        return vfm::columns::caption(options_, slots, progress, manifest);
      };
      const auto model = [&](std::string& words) {
        words += costs.words();
        return costs.to_json();
      };
      return tell_shard_estimate(options_.inputs, options_.directory, slots.threads(), work, false,
                                 nullptr, model);
    }
    return vfm::columns::caption(options_, slots, context.progress, context.manifest);
  }

 private:
  long score(vfm::Slots& slots, vfm::cli::Context& context) {
    await_workers(slots, workers_.get());
    vfm::columns::ScoreOptions options = score_.options(options_);
    vfm::columns::ScoreCosts costs;
    if (dry_run_) options.costs = &costs;
    const auto model = [&](std::string& words) {
      words += costs.words();
      return costs.to_json();
    };
    if (!dry_run_)
      return vfm::columns::score_captions(options, slots, context.progress, context.manifest);
    return tell_shard_estimate(
        options.inputs, options.directory, slots.threads(),
        [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
          return vfm::columns::score_captions(options, slots, progress, manifest);
        },
        false, nullptr, model);
  }

  void add_prompt_options(CLI::App& app) {
    auto* prompt = app.add_option("--prompt", prompt_, "what a model is asked about each clip");
    prompt->type_name("TEXT")->check(vfm::cli::not_blank)->default_str("to describe it");
    app.add_option("--prompt-file", prompt_file_, "take the prompt from a file")
        ->type_name("FILE")
        ->check(CLI::ExistingFile)
        ->excludes(prompt);
    const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
      of_prompts_.push_back(app.add_option(name, value, help)->type_name(type));
      return of_prompts_.back();
    };
    add("--also", also_, "ask this, too: its answer is caption_NAME in the json",
        "NAME=PROMPT|@FILE")
        ->allow_extra_args(false)
        ->check(vfm::cli::not_blank);
    add("--schema", schemas_, "a JSON Schema that the answer to --also NAME must fit", "NAME=FILE")
        ->allow_extra_args(false)
        ->check(vfm::cli::not_blank);
    add("--schema-tries", schema_tries_,
        "how often an answer that is drawn and does not fit is asked for", "N")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
  }

  void add_model_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    vfm::columns::ModelCaptionOptions& model = options_.model;
    const std::string group = "Captions by a model:DIR";
    const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
      of_model_.push_back(app.add_option(name, value, help)->type_name(type)->group(group));
      return of_model_.back();
    };
    add("--fps", model.fps, "frames a second that it sees", "N")
        ->check(CLI::Range(0.01, 240.0))
        ->default_str("2; of SmolVLM what its folder says");
    add("--window", model.window, "frames of a clip that it is asked about at a time", "N")
        ->check(CLI::Range(vfm::columns::kLeastWindow, 1 << 20))
        ->capture_default_str();
    add("--frame-tokens", model.frame_tokens, "what two frames of Qwen2.5-VL may become, at most",
        "N")
        ->check(CLI::Range(4, 16384))
        ->default_str("768");
    of_model_.push_back(app.add_flag("--logprobs", model.keep_tokens,
                                     "keep a caption's tokens and how likely each was, for --score")
                            ->group(group));
    of_eyes_ = of_model_.size();
    add("--max-tokens", model.rule.most_tokens, "of a text; a longer one is cut", "N")
        ->check(CLI::Range(1, 1 << 16))
        ->capture_default_str();
    add("--temperature", model.rule.choice.temperature,
        "of the draw of the next token; 0: the likeliest", "T")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    add("--top-p", model.rule.choice.top_p,
        "draw from the likeliest tokens that have this probability together", "P")
        ->check(CLI::Range(1e-6, 1.0))
        ->capture_default_str();
    add("--repetition-penalty", model.rule.choice.repetition_penalty,
        "of tokens that were there before; 1: none", "X")
        ->check(CLI::Range(0.01, 100.0))
        ->capture_default_str();
    options.group(group);
    seed_.add(options);
    device_.add(options);
    devices_.add(options);
    for (const char* name : {"--seed", "--device", "--devices"})
      of_model_.push_back(app.get_option(name));
    add("--compute", compute_,
        "what the model's products are computed in; auto: f32, bf16 on a GPU", "auto|f32|bf16")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->capture_default_str();
    add("--quantize", quantize_, "round its matrices to 8 bits when it is opened", "int8")
        ->check(CLI::IsMember({"int8"}));
  }

  void add_refine_options(CLI::App& app) {
    const std::string group = "Captions written anew";
    vfm::columns::RefineOptions& refine = options_.refine;
    app.add_option("--refine", refine.folder,
                   "let a language model (Qwen2, Qwen2.5) write each caption anew")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty)
        ->group(group);
    auto* prompt =
        app.add_option("--refine-prompt", refine_prompt_, "what it is told to do with a caption");
    prompt->type_name("TEXT")->check(vfm::cli::not_blank)->group(group);
    prompt->default_str("to keep all facts and add none");
    auto* file = app.add_option("--refine-prompt-file", refine_file_, "take that from a file");
    file->type_name("FILE")->check(CLI::ExistingFile)->excludes(prompt)->group(group);
  }

  void set_refine_options() {
    if (!refine_file_.empty()) refine_prompt_ = vfm::columns::read_prompt_file(refine_file_);
    if (!refine_prompt_.empty()) options_.refine.prompt = refine_prompt_;
  }

  void check_refine_options(bool endpoint) const {
    const bool refine = !options_.refine.folder.empty();
    if (!refine && (!refine_prompt_.empty() || !refine_file_.empty()))
      vfm::fail_usage(
          "--refine-prompt tells a language model what to do: name one by --refine DIR");
    if (refine && options_.model.keep_tokens)
      vfm::fail_usage("--logprobs keeps the tokens of captions, and --refine writes others");
    if (refine && endpoint)
      vfm::fail_usage(
          "--refine does not refine what a server says: ask the server for it by --prompt");
  }

  void set_model_options() {
    set_refine_options();
    options_.model.rule.seed = seed_.seed;
    if (asks_model()) choose_device();
    const bool gpu = options_.model.device == vfm::Device::cuda;
    // A text must not depend on the run: products are not timed, nor what is faster taken.
    if (gpu && !workers_) vfm::ops::set_gpu_options(options_.model.device, true, "auto", "");
    const bool low = compute_ == "bf16" || (compute_ == "auto" && gpu);
    options_.model.compute = low ? vfm::DType::bf16 : vfm::DType::f32;
    options_.model.int8 = !quantize_.empty();
    vfm::columns::Questions also;
    also.list = vfm::columns::parse_questions(also_, schemas_);
    also.tries = schema_tries_;
    also.keep_empty = options_.keep_empty;
    options_.model.also = options_.endpoint.also = also;
    const std::string prompt =
        prompt_file_.empty() ? prompt_ : vfm::columns::read_prompt_file(prompt_file_);
    if (prompt.empty()) return;
    options_.model.video_prompt = options_.model.picture_prompt = prompt;
    options_.endpoint.prompt = prompt;
  }

  void choose_device() {
    workers_ = workers_of(devices_, columns_.jobs, name());
    options_.model.workers = workers_.get();
    options_.model.device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
  }

  /// Whether a model of a folder computes anything.
  bool asks_model() const {
    return !vfm::columns::caption_model_folder(options_.from).empty() ||
           !options_.refine.folder.empty() || score_.asks_any();
  }

  void check_model_options(bool endpoint) const {
    check_refine_options(endpoint);
    if (!vfm::columns::caption_model_folder(options_.from).empty() || score_.asks_any()) return;
    const bool refine = !options_.refine.folder.empty();
    for (std::size_t i = 0; i < of_model_.size(); ++i)
      if (const CLI::Option* option = of_model_[i];
          option->count() > 0 && !(refine && i >= of_eyes_))
        vfm::fail_usage("{} is about a model, and --from names none: --from model:DIR",
                        option->get_name());
    if (!endpoint && (!prompt_.empty() || !prompt_file_.empty()))
      vfm::fail_usage(
          "--prompt and --prompt-file ask a model: name one by --from model:DIR or --endpoint");
    for (const CLI::Option* option : of_prompts_)
      if (!endpoint && option->count() > 0)
        vfm::fail_usage("{} asks a model: name one by --from model:DIR or --endpoint",
                        option->get_name());
  }

  void add_endpoint_options(vfm::cli::Options& options) {
    app_ = &options.app();
    const std::string group = "Captions from a server";
    vfm::columns::EndpointOptions& to = options_.endpoint;
    const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
      return app_->add_option(name, value, help)->type_name(type)->group(group);
    };
    add("--endpoint", to.url, "ask this OpenAI-compatible server (http://host:8000/v1)", "URL");
    add("--endpoint-model", to.model, "the model's name there", "NAME");
    add("--endpoint-key", key_, "environment variable with the key", "VARIABLE")
        ->capture_default_str();
    add("--endpoint-frames", to.frames, "frames of a clip", "N")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    add("--endpoint-side", to.side, "longer side of a frame, in pixels", "N")
        ->check(CLI::Range(16, 4096))
        ->capture_default_str();
    add("--endpoint-parallel", to.parallel, "requests at once", "N")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    add("--endpoint-retries", to.retries, "further tries of a request", "N")
        ->check(CLI::Range(0, 100))
        ->capture_default_str();
    add("--endpoint-tokens", to.most_tokens, "tokens of a caption at most", "N")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    add("--endpoint-temperature", to.temperature, "how freely the model chooses", "X")
        ->check(CLI::Range(0.0, 2.0))
        ->capture_default_str();
    app_->add_flag("--endpoint-schema", to.send_schema,
                   "send schemas, so that the server writes what fits (response_format)")
        ->group(group);
    add("--endpoint-price", prices_, "price of a million tokens in and out, to count cost",
        "IN,OUT")
        ->delimiter(',')
        ->expected(2)
        ->check(vfm::cli::not_negative);
    options.group(group);
    vfm::cli::add_seconds_option(options, "--endpoint-wait", to.wait,
                                 "before the second try; doubled for each further one");
    vfm::cli::add_seconds_option(options, "--endpoint-timeout", to.seconds, "for one try");
  }

  vfm::cli::ColumnOptions columns_;
  vfm::cli::ReportOptions report_;
  std::string empty_ = "skip", prompt_, compute_ = "auto", quantize_;
  std::vector<CLI::Option*> of_model_, of_prompts_;
  std::size_t of_eyes_ = 0;  // those of of_model_ that are about what a model sees come first
  std::string refine_prompt_, refine_file_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::DeviceOptions device_;
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, columns_.jobs, "vfm-caption"};
  std::unique_ptr<vfm::cards::StageModels> workers_;  // of these
  vfm::columns::CaptionOptions options_;
  CaptionScoreOptions score_;
  bool dry_run_ = false;
  CLI::App* app_ = nullptr;
  std::string key_ = "VFM_ENDPOINT_KEY", prompt_file_;
  std::vector<double> prices_;
  std::vector<std::string> also_, schemas_;
  int schema_tries_ = 3;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<CaptionTool>}});
}
