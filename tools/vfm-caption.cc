// vfm-caption: adds a caption column to shards.
// SPDX-License-Identifier: Apache-2.0
#include "base/address.h"
#include "base/error.h"
#include "base/json.h"
#include "caption_model_options.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "cli/secret.h"
#include "columns/caption/caption.h"
#include "columns/caption/caption_costs.h"
#include "columns/caption/endpoint_file.h"
#include "io/folder.h"
#include "io/http.h"
#include "io/remote/address.h"
#include "media/isolate/isolated.h"
#include "media/version.h"
#include "shard_estimate.h"
#include "shard_parts.h"
#include "verbs.h"
#include "workers/captions.h"
#include "workers/pictures.h"
#include "workers/texts.h"

namespace {

std::string is_folder(const std::string& name) {
  if (std::string refused = vfm::no_file_message(name); !refused.empty()) return refused;
  // No server is asked before the work begins.
  if (vfm::io::is_bucket(name)) return "";
  return vfm::io::is_folder(name) ? "" : "'" + name + "' is not a folder";
}

class CaptionTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-caption"; }
  std::string description() const override {
    return "Adds captions to the samples of shards, as a column beside them.";
  }
  std::string examples() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption > captioned.jsonl\n"
           "vfm-caption --from model:Qwen2.5-VL-3B-Instruct clips/*.tar\n"
           "vfm-caption --endpoint http://localhost:8000/v1 clips/*.tar";
  }

  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + vfm::io::http_version();
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Output");
    columns_.add(options);
    options.group("Output");
    part_.add(options);
    part_.add_follow(options);
    part_.add_waiting(options);
    report_.add(options, "write a page with clips and their captions");
    vfm::cli::add_dry_run(options, dry_run_);
    add_source_options(options);
    add_question_options(options);
    add_model_options(options);
    add_refine_options(options);
    table_ = &options;
  }

  void check() override {
    columns_.input_limits.check_isolation(columns_.hwaccel);
    check_part(part_, columns_.output.force, dry_run_, report_.path);
    vfm::columns::EndpointOptions& endpoint = options_.endpoint;
    if (has_endpoint() && !table_->row("--from").given()) from_.clear();
    options_.from = vfm::columns::parse_caption_sources(from_, has_endpoint());
    vfm::columns::check_questions(also_, schemas_);
    check_models();
    model_.check();
    if (!has_endpoint()) return;
    if (dry_run_) vfm::fail_usage("--dry-run asks no server, as answers cost; drop --endpoint");
    const bool named = !endpoint.key_variable.empty();
    endpoint.secret = vfm::cli::secret_from_environment(
        named ? endpoint.key_variable : "VFM_ENDPOINT_KEY", named);
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override {
    return vfm::media::fork_isolation(columns_.input_limits.limits.isolate);
  }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_gpu(int channel) override {
    using namespace vfm::workers;
    return vfm::workers::serve_gpu(channel, stage_services({{kCaptions, open_captions},
                                                            {kRewriting, open_rewriting},
                                                            {kPictures, open_pictures},
                                                            {kTexts, open_texts}}));
  }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    vfm::media::begin_isolation();
    options_.inputs = columns_.input.resolved();
    options_.directory = columns_.output.directory;
    part_work_ = part_work("caption", part_, options_.directory, options_.inputs,
                           vfm::media::ffmpeg_version(), context.progress);
    options_.parts = part_work_ ? &*part_work_ : nullptr;
    options_.force = columns_.output.force;
    options_.limits.member = columns_.member.bytes;
    options_.report = report_.path;
    options_.hardware = model_.decoder(columns_.hwaccel);
    set_models();
    if (has_endpoint() && options_.endpoint.model.empty())
      options_.endpoint.model = vfm::columns::served_model(options_.endpoint);
    vfm::share::Slots slots = context.slots(columns_.jobs);
    // One more shard: its samples use the GPUs while the last samples of a shard are computed.
    if (model_.workers()) slots.add_away(1), slots.set_flow(model_.workers()->flow());
    return dry_run_ ? tell_cost(slots)
                    : vfm::columns::caption(options_, slots, context.progress, context.manifest);
  }

 private:
  long tell_cost(vfm::share::Slots& slots) {
    options_.report.clear();
    vfm::columns::CaptionCosts costs;
    options_.model.costs = &costs;
    const auto work = [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
      return vfm::columns::caption(options_, slots, progress, manifest);
    };
    return tell_shard_estimate(options_.inputs, options_.directory, slots.threads(), work, false,
                               nullptr, [&](std::string& words) {
                                 words += costs.words();
                                 return costs.to_json();
                               });
  }

  void add_source_options(vfm::cli::Options& options) {
    options.group("Sources");
    options.add("--from", from_, "SOURCE,...", "take captions from the first source that has one")
        .separated_by(',')
        .shown("existing,builtin:measure")
        .everyday()
        .manual(
            "Take each caption from the first of these sources that has a caption. See SOURCES. "
            "With *--endpoint* there is no default.");
    options
        .add("--sidecars", options_.sidecars, "DIR,...", "also read captions beside sources in DIR")
        .separated_by(',')
        .check(is_folder)
        .everyday()
        .manual(
            "Also read captions beside videos that are named only inside shards, if the captions "
            "are below these folders. Links are followed. This option is for shards that are given "
            "as paths, without records.");
    options.add("--max-characters", max_characters_, "N", "cut longer captions at a word")
        .in(1, 1'000'000'000)
        .shown("")
        .manual(
            "Cut captions to at most _N_ characters, at the end of a word if this keeps at least "
            "_N_ / 2 characters. A letter with accents, or an emoji, is one character.");
    options
        .parsed(
            "--endpoint",
            [this](const std::string& value) {
              options_.endpoint = vfm::columns::read_endpoint(value);
            },
            "URL|FILE.json", "ask this server for captions that no source has")
        .everyday()
        .manual(
            "Ask this server for captions that no source of *--from* has. The value is an address, "
            "such as _http://localhost:8000/v1_, or a JSON file with the address and the server's "
            "settings. See *vfm-endpoint*(5). Not with *--dry-run*.");
    options.flag("--keep-empty", options_.keep_empty, "accept empty captions")
        .manual(
            "Accept an empty or missing caption. Without this option, the next source is tried "
            "after an empty caption, and a sample for which no source has words is recorded as an "
            "error and gets an empty caption.");
  }

  void add_question_options(vfm::cli::Options& options) {
    options.group("Questions");
    model_.add_prompt(options, "ask the model this question about each clip")
        .manual(
            "Ask the model or the server this question about each clip. The answer is the caption. "
            "The default question asks for a description of the clip.");
    options
        .add("--also", also_, "NAME=TEXT|@FILE",
             "also ask this question; the answer is "
             "caption_NAME in the json")
        .check(vfm::cli::not_blank)
        .repeated()
        .everyday()
        .manual(
            "Also ask this question, and put the answer into the json as _caption_NAME_. May be "
            "given several times. See FURTHER QUESTIONS.");
    options.add("--schema", schemas_, "NAME=FILE", "the answer to --also NAME must fit this schema")
        .check(vfm::cli::not_blank)
        .repeated()
        .everyday()
        .manual("The answer to *--also* _NAME_ must be JSON that fits the JSON Schema in _FILE_.");
    options.add("--schema-tries", schema_tries_, "N", "ask up to N times, at a temperature above 0")
        .in(1, 100)
        .manual(
            "If the temperature is above 0, ask up to _N_ times for an answer that fits the "
            "schema.");
  }

  void add_model_options(vfm::cli::Options& options) {
    vfm::models::AnswerRule& rule = options_.model.rule;
    options.group("Models");
    model_.add_sight(options);
    options
        .flag("--logprobs", options_.model.keep_tokens,
              "keep tokens and their probabilities for vfm-caption score")
        .manual(
            "Keep the tokens of each caption and their log probabilities, about ten bytes a token. "
            "*vfm-caption score* with the same model then does not read the clip again. Not with "
            "*--refine*.");
    options.add("--max-tokens", rule.most_tokens, "N", "cut texts at N tokens")
        .in(1, 1 << 16)
        .everyday()
        .manual(
            "The maximum number of tokens of the text about a window. A longer text is cut, "
            "and marked.");
    options.add("--temperature", rule.choice.temperature, "T", "sampling temperature; 0 is greedy")
        .in(0, 100)
        .manual("Sampling temperature. At 0 the likeliest token is taken.");
    options
        .add("--top-p", rule.choice.top_p, "P",
             "draw from the likeliest tokens of total "
             "probability P")
        .in(1e-6, 1)
        .manual("Draw from the likeliest tokens whose probabilities sum to _P_.");
    options
        .add("--repetition-penalty", rule.choice.repetition_penalty, "X",
             "make earlier tokens less likely; 1 is off")
        .in(0.01, 100)
        .manual(
            "Divide the positive logits of earlier tokens, also of the prompt, by _X_, and "
            "multiply the negative logits by _X_. 1 is off.");
    seed_.add(options);
    model_.add_computing(options);
    options.add("--quantize", quantize_, "int8", "round matrices to 8 bits")
        .one_of({"int8"})
        .shown("")
        .manual(
            "When the model is opened, round matrices to 8 bits with a scale for each row. Weights "
            "take half the memory of bf16, and texts differ. The vision layers of SmolVLM and "
            "Idefics3 are not rounded. Refused for GGUF files in Q8_0, Q4_K, Q5_K or Q6_K.");
  }

  void add_refine_options(vfm::cli::Options& options) {
    options.group("Rewriting");
    vfm::cli::OptionRow& refine = options.add("--refine", options_.refine.folder, "DIR",
                                              "rewrite captions by a language model");
    refine.check(vfm::cli::not_empty)
        .everyday()
        .manual(
            "Rewrite each caption with this language model. See REWRITING. Not with *--endpoint*.");
    add_text_option(options, "--refine-prompt", refine_prompt_,
                    "tell the language model what to do with a caption")
        .check(vfm::cli::not_blank)
        .needs(refine)
        .everyday()
        .manual(
            "Tell the language model what to do with a caption. By default the model keeps all "
            "facts and adds none.");
  }

  void set_models() {
    vfm::columns::ModelCaptionOptions& model = options_.model;
    model_.set(model, asks_model());
    model.rule.seed = seed_.seed;
    model.int8 = !quantize_.empty();
    if (!refine_prompt_.empty()) options_.refine.prompt = refine_prompt_;
    vfm::columns::Questions also;
    also.list = vfm::columns::parse_questions(also_, schemas_);
    also.tries = schema_tries_;
    also.keep_empty = options_.keep_empty;
    model.also = options_.endpoint.also = also;
    if (model_.has_prompt()) options_.endpoint.prompt = model_.prompt();
    options_.max_characters = static_cast<std::size_t>(max_characters_);
  }

  bool names_model() const { return !options_.from.model_folder().empty(); }
  bool asks_model() const { return names_model() || !options_.refine.folder.empty(); }

  bool has_endpoint() const { return !options_.endpoint.url.empty(); }

  void check_models() const {
    const bool refine = !options_.refine.folder.empty();
    if (refine && options_.model.keep_tokens)
      vfm::fail_usage("--logprobs keeps the tokens of captions that --refine rewrites; drop one");
    if (refine && has_endpoint())
      vfm::fail_usage(
          "--refine does not rewrite what a server says; ask the server for it with --prompt");
    const auto refuse = [&](std::initializer_list<const char*> names, const char* advice) {
      for (const char* name : names)
        if (table_->row(name).given()) vfm::fail_usage("{} is about a model; {}", name, advice);
    };
    const bool model = names_model();
    if (!model && !has_endpoint())
      refuse({"--prompt", "--also"}, "name one with --from model:DIR or --endpoint");
    if (!model)
      refuse({"--fps", "--window", "--frame-tokens", "--logprobs"},
             "name its folder with --from model:DIR");
    if (!asks_model())
      refuse({"--max-tokens", "--temperature", "--top-p", "--repetition-penalty", "--seed",
              "--device", "--compute", "--quantize"},
             "name its folder with --from model:DIR or --refine");
  }

  vfm::cli::ColumnOptions columns_;
  vfm::cli::PartOptions part_;
  std::optional<vfm::shard::PartTask> part_work_;
  vfm::cli::ReportOptions report_;
  vfm::cli::SeedOptions seed_;
  CaptionModelOptions model_{columns_.jobs};
  vfm::columns::CaptionOptions options_;
  std::vector<std::string> from_ = {"existing", "builtin:measure"}, also_, schemas_;
  std::string quantize_, refine_prompt_;
  int max_characters_ = 0, schema_tries_ = 3;
  bool dry_run_ = false;
  vfm::cli::Options* table_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<CaptionTool>},
                        {"score", make_caption_score},
                        {"status", make_caption_status}});
}
