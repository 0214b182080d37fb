// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/embed.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "columns/column_job.h"
#include "columns/embed/clip_scores.h"
#include "columns/embed/clip_vector.h"
#include "columns/embed/clip_windows.h"
#include "columns/embed/glimpse.h"
#include "columns/model_place.h"
#include "curate/vectors/look.h"
#include "io/npy.h"
#include "parts/run_file.h"
#include "shard/input_totals.h"
#include "shard/media_members.h"
#include "text/encoder.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

/// Returns the tars that the job reads (ColumnJob::unread).
std::vector<std::string> tars_to_embed(const io::Record& record) {
  return tars_without(record, {"embed", "score"});
}

/// Returns true if any sample has a caption. Samples of a column have the same members, so one
/// caption gives all samples a text embedding.
bool any_caption(const std::vector<std::string>& tars, const shard::ReadLimits& limits) {
  shard::JoinedReader reader(tars, limits);
  for (shard::Sample sample; reader.next(sample); check_stop())
    if (sample.find("txt") != nullptr) return true;
  return false;
}

/// Returns true if any sample has captions of windows, in the caption column if the shard has one.
bool any_caption_windows(const io::Record& record, const shard::ReadLimits& limits) {
  std::vector<std::string> tars = tars_to_embed(record);
  if (const auto columns = record.json->find("columns"); columns != record.json->end())
    if (const auto captions = get_string(*columns, "caption")) tars = {*captions};
  shard::JoinedReader reader(tars, limits);
  for (shard::Sample sample; reader.next(sample); check_stop())
    if (const std::string* json = sample.find("json"))
      if (json->find("\"caption_windows\"") != std::string::npos) return true;
  return false;
}

Json known_facts(const shard::Sample& sample) {
  const std::string* json = sample.find("json");
  if (json == nullptr) return nullptr;
  try {
    return parse_json(*json, sample.key);
  } catch (const Error&) {
    return nullptr;
  }
}

/// Number of captions that are encoded together.
constexpr std::size_t kTogether = 256;
/// Approximate number of windows that wait with the captions: 75 MB for vectors of 1152 numbers.
constexpr std::size_t kWindowsTogether = 1 << 14;

/// Computes vectors of clips by `pictures`, or by their look if `pictures` is null.
struct ClipEmbedder {
  std::unique_ptr<models::PictureEncoder> pictures;
  std::unique_ptr<ClipScores> scores;  // null if no scores are asked for
  int frames = 0;

  bool text_image() const { return scores && scores->text_image(); }
  int dim() const { return pictures ? pictures->dim() : curate::kLookDim; }
  Json config() const {
    return pictures ? clip_vector_config(*pictures, frames) : curate::look_config();
  }
};

/// Embeds the samples of one shard. Call push() for each sample, and then flush().
class Embedder {
 public:
  Embedder(const EmbedOptions& options, const ClipEmbedder& clips, const text::TextEncoder* encoder,
           const io::Record& record, ColumnNotes& notes, shard::Writer& writer)
      : options_(options),
        clips_(clips),
        encoder_(encoder),
        record_(record),
        notes_(notes),
        writer_(writer) {
    if (clips.pictures)
      frames_.emplace(*clips.pictures, clips.scores ? clips.scores->frame_score() : FrameScore());
  }

  void push(const shard::Sample& sample) {
    const bool reads = encoder_ || clips_.text_image();
    const std::string* caption = reads ? sample.find("txt") : nullptr;
    if (std::exchange(first_, false))
      with_captions_ =
          caption != nullptr || (reads && any_caption(tars_to_embed(record_), options_.limits));
    if (const bool asked = std::exchange(asked_, true); !asked && encoder_ && with_captions_)
      in_windows_ = any_caption_windows(record_, options_.limits);
    if ((options_.need_text || clips_.text_image()) && !with_captions_)
      fail("has no captions; run vfm-caption on it first, or leave {} out",
           options_.need_text ? "--text" : "--text-image");
    if (!options_.video && !with_captions_) fail("there is nothing to embed: it has no captions");
    Waiting waiting;
    waiting.out.key = sample.key;
    waiting.has_caption = caption != nullptr;
    if (in_windows_) take_window_captions(sample, waiting);
    if (options_.video) see(sample, waiting);
    if (with_captions_ && !caption)
      note(sample, "has no caption, unlike other samples of its shard", Cause::missing);
    if (caption) captions_.push_back(text::to_utf8(*caption));
    waiting_.push_back(std::move(waiting));
    if (frames_) take_vectors(false);
    if (waiting_.size() == kTogether || windows_ >= kWindowsTogether) flush();
  }

  void flush() {
    if (frames_) take_vectors(true);
    std::vector<text::TokenEmbeddings> texts;
    std::vector<text::TokenEmbeddings> windows;
    if (encoder_) texts = encoder_->encode_all(captions_);
    if (!window_captions_.empty()) windows = encoder_->encode_all(window_captions_);
    std::vector<std::vector<float>> captions;
    if (clips_.text_image()) captions = clips_.scores->encode(captions_);
    std::size_t next = 0, next_window = 0;
    for (Waiting& sample : waiting_) {
      const std::size_t caption = sample.has_caption ? next++ : 0;
      Json encoders = Json::object();
      if (options_.video) {
        encoders["video_encoder"] = clip_config_;
        const auto dim = static_cast<std::int64_t>(sample.vector.size());
        sample.out.members.push_back({"video.npy", io::make_npy_half({dim}, sample.vector)});
        if (options_.window_seconds > 0) add_windows(sample, encoders);
      }
      if (encoder_ && with_captions_) {
        const text::TokenEmbeddings tokens = sample.has_caption
                                                 ? usable(sample.out, std::move(texts[caption]))
                                                 : text::TokenEmbeddings{};
        sample.out.members.push_back(
            {"text.npy", io::make_npy_half({tokens.tokens, encoder_->dim()}, tokens.values)});
        if (in_windows_) add_text_windows(sample, windows, next_window, encoders);
        encoders["text_encoder"] = encoder_->config().to_json();
      }
      encoders.update(sample.facts);
      if (!sample.scores.is_null()) {
        encoders.update(sample.scores);
        if (clips_.text_image() && sample.has_caption) compare(sample, captions[caption], encoders);
        encoders["scored_by"] = clips_.scores->config();
      }
      sample.out.members.push_back({"json", dump_json(encoders)});
      writer_.add(sample.out);
    }
    waiting_.clear();
    captions_.clear();
    window_captions_.clear();
    windows_ = 0;
  }

 private:
  /// `why` is an Error, or a message and its Cause.
  template <class... Why>
  void note(const shard::Sample& sample, const Why&... why) {
    notes_.errors.emplace_back(shard::sample_name(sample.key, record_.path()), why...);
  }

  /// Returns the embedding. If a value does not fit fp16, notes an error and returns none.
  text::TokenEmbeddings usable(const shard::Sample& sample, text::TokenEmbeddings tokens) {
    try {
      io::check_halves(tokens.values, fmt::format("its text embedding of {}", encoder_->name()));
      return tokens;
    } catch (const Error& error) {
      note(sample, error);
      return {};
    }
  }

  struct Waiting {
    shard::Sample out;
    bool has_caption = false;
    std::size_t window_captions = 0;
    Json facts = Json::object();  // measured facts that the sample's json lacks
    std::vector<float> vector;    // of the clip
    std::vector<float> windows;   // vectors of windows, [W, dim]
    std::vector<double> begins;   // of the windows, in seconds
    bool in_frames = false;       // if true, frames_ will give the vector
    Json scores;                  // of the vector, or null
  };

  /// Adds the caption's score. If the caption has no vector, notes an error.
  void compare(const Waiting& sample, const std::vector<float>& caption, Json& fields) {
    if (!caption.empty())
      fields["text_image"] = ClipScores::fit(sample.vector, caption);
    else
      note(sample.out, "its caption's vector has values that are not finite: no text_image",
           Cause::other);
  }

  void take_window_captions(const shard::Sample& sample, Waiting& waiting) {
    const Json facts = known_facts(sample);
    const auto windows = facts.find("caption_windows");
    if (windows == facts.end() || !windows->is_array()) return;
    waiting.window_captions = windows->size();
    for (const Json& window : *windows)
      window_captions_.push_back(text::to_utf8(get_string(window, "caption").value_or("")));
  }

  /// Adds the embeddings of the windows' captions, which begin at `next` in `made`.
  void add_text_windows(Waiting& sample, std::vector<text::TokenEmbeddings>& made,
                        std::size_t& next, Json& fields) {
    text::TokenEmbeddings all;
    Json counts = Json::array();
    for (std::size_t i = 0; i < sample.window_captions; ++i) {
      const text::TokenEmbeddings tokens = usable(sample.out, std::move(made[next++]));
      all.values.insert(all.values.end(), tokens.values.begin(), tokens.values.end());
      all.tokens += tokens.tokens;
      counts.push_back(tokens.tokens);
    }
    sample.out.members.push_back(
        {"text.windows.npy", io::make_npy_half({all.tokens, encoder_->dim()}, all.values)});
    fields["text_windows"] = std::move(counts);
  }

  /// Adds the vectors of the windows. A sample without a vector has no windows.
  void add_windows(Waiting& sample, Json& fields) const {
    const std::int64_t dim = clips_.dim();
    const auto count = static_cast<std::int64_t>(sample.windows.size()) / dim;
    if (count == 0) sample.begins.clear();
    sample.out.members.push_back({"windows.npy", io::make_npy_half({count, dim}, sample.windows)});
    fields["video_windows"] =
        clip_windows_json(options_.window_seconds, clips_.frames, sample.begins);
  }

  /// Sets the vector of the clip, or passes the clip's frames to frames_.
  void see(const shard::Sample& sample, Waiting& waiting) {
    waiting.vector.assign(static_cast<std::size_t>(clips_.dim()), 0.0f);
    const shard::Member* member = shard::media_member(sample);
    if (member == nullptr) return note(sample, shard::no_media(sample), Cause::missing);
    const std::string where = fmt::format("{}.{}", sample.key, member->extension);
    try {
      if (!clips_.pictures) {
        Seen seen = see_member(*member, where, known_facts(sample), options_.hardware);
        waiting.vector = curate::look(seen.glimpse);
        waiting.facts = std::move(seen.facts);
        return;
      }
      if (options_.window_seconds > 0) {
        WindowedClip clip =
            take_clip_windows(*member, where, known_facts(sample), *clips_.pictures, clips_.frames,
                              options_.window_seconds, options_.hardware, *frames_);
        waiting.in_frames = true;
        waiting.facts = std::move(clip.facts);
        waiting.begins = std::move(clip.begins);
        windows_ += waiting.begins.size();
        return;
      }
      PreparedClip clip = prepare_clip(*member, where, known_facts(sample), *clips_.pictures,
                                       clips_.frames, options_.hardware);
      waiting.in_frames = true;
      waiting.facts = std::move(clip.facts);
      frames_->push(std::move(clip.frames));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device) throw;  // windows are encoded while they are added
      note(sample, error);
    }
  }

  /// Moves finished vectors to their samples, in order. With `rest`, all vectors are finished.
  void take_vectors(bool rest) {
    auto sample = waiting_.begin();
    for (ClipVector& clip : frames_->take(rest)) {
      while (!sample->in_frames)
        ++sample;
      sample->in_frames = false;
      try {
        const std::string what =
            fmt::format("its vector by {}", clip_config_["name"].get<std::string>());
        io::check_halves(clip.vector, what);
        for (const std::vector<float>& window : clip.windows)
          io::check_halves(window, what);
        for (const std::vector<float>& window : clip.windows)
          sample->windows.insert(sample->windows.end(), window.begin(), window.end());
        if (clips_.scores && clip.frames > 0) sample->scores = clips_.scores->of_clip(clip);
        sample->vector = std::move(clip.vector);
      } catch (const Error& error) {
        note(sample->out, error);
      }
    }
  }

  const EmbedOptions& options_;
  const ClipEmbedder& clips_;
  const text::TextEncoder* encoder_;
  const io::Record& record_;
  ColumnNotes& notes_;
  shard::Writer& writer_;
  std::optional<ClipVectors> frames_;  // empty without a picture encoder
  const Json clip_config_ = options_.video ? clips_.config() : Json();
  std::vector<Waiting> waiting_;
  std::size_t windows_ = 0;            // number of windows in waiting_
  std::vector<std::string> captions_;  // of the samples in waiting_ that have captions
  std::vector<std::string> window_captions_;
  bool first_ = true, with_captions_ = false, asked_ = false, in_windows_ = false;
};

Json settings_of(const EmbedOptions& options, const ClipEmbedder& clips,
                 const text::TextEncoder* encoder) {
  Json settings = {{"version", 1}};
  settings["video_encoder"] = options.video ? clips.config() : Json();
  settings["text_encoder"] = encoder ? encoder->config().to_json() : Json();
  settings["need_text"] = options.need_text;
  // Unused settings are left out, so that existing columns stay valid.
  if (options.window_seconds > 0) settings["window_seconds"] = options.window_seconds;
  if (clips.scores)
    settings["scores"] = {{"by", clips.scores->config()}, {"text_image", clips.text_image()}};
  return settings;
}

/// ColumnJob::options.
std::map<std::string, std::string> option_names() {
  return {{"video_encoder", "--video"},
          {"video_encoder.compute", "--compute"},
          {"video_encoder.frames", "--video-frames"},
          {"text_encoder", "--text"},
          {"text_encoder.compute", "--compute"},
          {"text_encoder.dim", "--text-dim"},
          {"text_encoder.max_tokens", "--text-tokens"},
          {"need_text", "--text"},
          {"window_seconds", "--windows"},
          {"scores", "--aesthetic, --text-image and --concept"}};
}

/// Throws Error{usage} if nobody has said whether parts that follow those of vfm-clip wait for
/// captions, too.
void check_follow(const EmbedOptions& options, bool text_image) {
  if (!options.parts || !options.parts->choice.follow) return;
  if (!options.text || options.need_text || text_image) return;
  const std::string& clips = options.parts->clips;
  if (parts::count_parts(clips, "caption") || parts::count_parts(options.parts->directory, "embed"))
    return;
  fail_usage(
      "vfm-caption has no parts in '{}' yet: say whether its captions are embedded, with --text "
      "builtin:hash or --text none",
      clips);
}

}  // namespace

long embed(const EmbedOptions& options, share::Slots& slots, Progress& progress,
           io::ManifestWriter& manifest) {
  if (!options.video && !options.text) fail_usage("there is nothing to embed");
  check_follow(options, options.scores.text_image);
  const ModelPlace place{options.device, options.workers};
  const auto encoder = options.text ? place.texts(options.text_encoder) : nullptr;
  ClipEmbedder clips;
  if (options.video && !options.picture_encoder.empty()) {
    clips.pictures =
        place.pictures(options.picture_encoder, options.picture_compute, options.frames);
    clips.frames = clip_frames(*clips.pictures, options.frames);
  }
  if (options.window_seconds > 0 && !clips.pictures)
    fail_usage("windows of clips have vectors of a model alone");
  if (options.scores.any()) {
    if (!clips.pictures) fail_usage("clips are scored by the vectors of a model alone");
    clips.scores = std::make_unique<ClipScores>(
        options.scores, *clips.pictures, options.picture_encoder, place, options.picture_compute);
  }
  place.start();
  progress.start("samples", shard::count_samples(options.inputs));
  ColumnJob job;
  job.tool = "vfm-embed";
  job.column = "embed";
  job.unread = {"score"};
  const bool reads_captions = options.text || clips.text_image();
  (reads_captions ? job.reads : job.unread).emplace_back("caption");
  job.awaits = options.need_text || clips.text_image();
  job.directory = options.directory;
  job.force = options.force;
  job.parts = options.parts;
  job.progress = &progress;
  job.limits = options.limits;
  job.common = settings_of(options, clips, encoder.get());
  job.settings = [&](const io::Record&) { return job.common; };
  job.options = option_names();
  job.fill = [&](const io::Record& record, shard::JoinedReader& reader, shard::Writer& writer,
                 ColumnNotes& notes) {
    Embedder embedder(options, clips, encoder.get(), record, notes, writer);
    shard::Sample sample;
    while (reader.next(sample)) {
      check_stop();
      embedder.push(sample);
      progress.add();
    }
    embedder.flush();
  };
  return run_column_job(job, options.inputs, slots, manifest);
}

}  // namespace vfm::columns
