// SPDX-License-Identifier: Apache-2.0
#include "columns/score/score.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rounding.h"
#include "base/stop.h"
#include "columns/caption/written_caption.h"
#include "columns/column_job.h"
#include "columns/embed/clip_scores.h"
#include "columns/embed/clip_vector.h"
#include "columns/score/caption_quality.h"
#include "columns/score/score_frames.h"
#include "shard/input_totals.h"
#include "shard/media_members.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

/// Maximum number of sentences that are compared with frames. The last has the rest of the caption.
constexpr std::size_t kMostSentences = 64;

struct ScoreModels {
  std::unique_ptr<models::CaptionModel> captioner;
  std::unique_ptr<models::PictureEncoder> pictures;
  std::unique_ptr<ClipScores> texts;  // text tower of `pictures`
  Json by = Json::object();           // value of "caption_scored_by"
  Json asked;                         // config of the captioner, with its prompts

  explicit ScoreModels(const ScoreOptions& options) {
    by["rule"] = kQualityWeights.rule;
    const Device device = options.model.device;
    const ModelPlace place = options.model.place();
    if (device == Device::cuda) by["device"] = "cuda";
    if (!options.captioner.empty()) {
      captioner = place.captions(options.captioner, options.model.compute,
                                 options.model.frame_tokens, false);
      captioner->check_prompt(options.model.video_prompt);
      captioner->check_prompt(options.model.picture_prompt);
      asked = captioner->config();
      asked["fps"] = options.model.fps_of(*captioner);
      asked["window"] = options.model.window;
      asked["prompt"] = options.model.video_prompt;
      asked["picture_prompt"] = options.model.picture_prompt;
      by["captioner"] = encoder_identity(asked);
    }
    if (options.clip.empty()) return;
    pictures = place.pictures(options.clip, DType::f32);
    ClipScoreOptions texts_of;
    texts_of.text_image = true;
    texts = std::make_unique<ClipScores>(texts_of, *pictures, options.clip, place, DType::f32);
    by["clip"] = encoder_identity(clip_vector_config(*pictures, kClipFrames));
    by["texts"] = texts->config().at("texts");
  }
};

class CaptionScorer {
 public:
  CaptionScorer(const ScoreOptions& options, const ScoreModels& by, const io::Record& record,
                ColumnNotes& notes)
      : options_(options), by_(by), record_(record), notes_(notes) {}

  /// Returns the sample's KEY.json.
  Json score(const shard::Sample& sample) {
    const std::string* member = sample.find("txt");
    const std::string caption = member ? text::clean_line(text::to_utf8(*member)) : "";
    if (caption.empty()) {
      note(sample, "has no caption to score: vfm-caption makes some", Cause::missing);
      return Json::object();
    }
    CaptionScores scores;
    scores.text = text::check_text(caption);
    find_written_tokens(sample, caption);
    if (by_.captioner || by_.pictures) compare(sample, caption, scores);
    Json fields = scores.fields();
    fields["caption_scored_by"] = by_.by;
    if (written_) fields["caption_scored_by"]["written"] = true;
    fields["caption_scored_by"]["caption"] = hash_hex(caption);
    return fields;
  }

 private:
  /// `why` is an Error, or a message and its Cause.
  template <class... Why>
  void note(const shard::Sample& sample, const Why&... why) {
    notes_.errors.emplace_back(shard::sample_name(sample.key, record_.path()), why...);
  }

  /// Sets written_ to the tokens that the captioner wrote, if the caption is its text.
  void find_written_tokens(const shard::Sample& sample, const std::string& caption) {
    written_.reset();
    const std::string* json = sample.find("json");
    if (!by_.captioner || json == nullptr) return;
    try {
      const Json facts = parse_json(*json, sample.key + ".json");
      if (facts.is_object()) written_ = find_written(facts, caption, *by_.captioner, by_.asked);
    } catch (const Error&) {
      written_.reset();  // invalid JSON has no tokens
    }
  }

  void take_gain(const shard::Sample& sample, const std::string& caption,
                 const models::SeenFrames& seen, CaptionScores& scores) {
    try {
      scores.gain = gain(caption, seen);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device) throw;
      note(sample, error);
    }
  }

  /// Failures are noted. A failure removes only its own fields.
  void compare(const shard::Sample& sample, const std::string& caption, CaptionScores& scores) {
    if (written_) take_gain(sample, caption, {}, scores);
    const models::CaptionModel* const looks = written_ ? nullptr : by_.captioner.get();
    if (looks == nullptr && !by_.pictures) return;
    const shard::Member* member = shard::media_member(sample);
    if (member == nullptr) return note(sample, shard::no_media(sample), Cause::missing);
    const double fps = by_.captioner ? options_.model.fps_of(*by_.captioner) : options_.model.fps;
    const ScoreEyes eyes{looks, by_.pictures.get(), fps, options_.model.window};
    ScoreFrames frames;
    try {
      frames = take_score_frames(*member, fmt::format("{}.{}", sample.key, member->extension), eyes,
                                 options_.hardware);
    } catch (const Error& error) {
      return note(sample, error);
    }
    try {
      if (by_.pictures) scores.fits = fits(caption, frames.frames);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device) throw;
      note(sample, error);
    }
    if (looks != nullptr) take_gain(sample, caption, frames.seen, scores);
  }

  std::vector<double> fits(const std::string& caption,
                           const std::vector<std::vector<float>>& prepared) const {
    std::vector<std::vector<float>> frames = by_.pictures->encode_prepared(prepared);
    for (std::vector<float>& frame : frames)
      models::normalise(frame);
    std::vector<std::vector<float>> sentences;
    // One by one, because a text that is encoded with others may get other last bits.
    for (const std::string& sentence : text::sentences(caption, kMostSentences))
      sentences.push_back(std::move(by_.texts->encode({sentence}).front()));
    return sentence_fits(sentences, frames);
  }

  CaptionGain gain(const std::string& caption, const models::SeenFrames& seen) const {
    const models::CaptionModel& model = *by_.captioner;
    const bool still = written_ ? written_->still : seen.still;
    const std::string& prompt = still ? options_.model.picture_prompt : options_.model.video_prompt;
    const CaptionGain gain =
        written_ ? caption_gain(written_->log_probabilities,
                                model.log_probabilities(nullptr, prompt, written_->ids))
                 : caption_gain(model.log_probabilities(&seen, prompt, caption),
                                model.log_probabilities(nullptr, prompt, caption));
    if (options_.costs)
      options_.costs->add(written_ ? 0 : model.pass_flops(&seen, prompt, gain.tokens),
                          model.pass_flops(nullptr, prompt, gain.tokens));
    return gain;
  }

  const ScoreOptions& options_;
  const ScoreModels& by_;
  const io::Record& record_;
  ColumnNotes& notes_;
  std::optional<WrittenCaption> written_;  // of the current sample
};

}  // namespace

void ScoreCosts::add(double with, double without) {
  const std::lock_guard lock(mutex_);
  ++clips_;
  written_ += with > 0 ? 0 : 1;
  with_ += with;
  without_ += without;
}

Json ScoreCosts::to_json() const {
  const std::lock_guard lock(mutex_);
  if (clips_ == 0) return nullptr;
  const auto of_clip = [&](double sum) { return six_digits(sum / static_cast<double>(clips_)); };
  return {{"clips", clips_},
          {"written", written_},
          {"flops", {{"with_video", of_clip(with_)}, {"alone", of_clip(without_)}}}};
}

std::string ScoreCosts::words() const {
  const Json told = to_json();
  if (told.is_null()) return "";
  const auto tera = [&](const char* name) {
    return told.at("flops").at(name).get<double>() / 1e12;
  };
  return vfm::format(
      "a caption of the sample costs the captioner {:.3g} TFLOP with the video, which it need not "
      "see again for {} of {}, and {:.3g} without\n",
      tera("with_video"), told.at("written").get<std::int64_t>(),
      told.at("clips").get<std::int64_t>(), tera("alone"));
}

long score_captions(const ScoreOptions& options, share::Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest) {
  const ScoreModels by(options);
  options.model.place().start();
  progress.start("samples", shard::count_samples(options.inputs));
  ColumnJob job;
  job.tool = "vfm-caption";
  job.column = "score";
  job.unread = {"embed"};
  job.reads = {"caption"};
  job.directory = options.directory;
  job.force = options.force;
  job.progress = &progress;
  job.limits = options.limits;
  job.settings = [&](const io::Record&) { return Json{{"version", 1}, {"by", by.by}}; };
  job.fill = [&](const io::Record& record, shard::JoinedReader& reader, shard::Writer& writer,
                 ColumnNotes& notes) {
    CaptionScorer scorer(options, by, record, notes);
    shard::Sample sample;
    while (reader.next(sample)) {
      check_stop();
      shard::Sample out;
      out.key = sample.key;
      out.members.push_back({"json", dump_json(scorer.score(sample))});
      writer.add(out);
      progress.add();
    }
  };
  return run_column_job(job, options.inputs, slots, manifest);
}

}  // namespace vfm::columns
