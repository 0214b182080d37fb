// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/model_caption.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "columns/caption/caption_costs.h"
#include "columns/caption/written_caption.h"
#include "columns/clip_frames.h"
#include "media/colour/scaler.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

class WindowTaker final : public FrameTaker {
 public:
  WindowTaker(const models::CaptionModel& model, const ModelCaptionOptions& options,
              std::string key)
      : model_(model), options_(options), key_(std::move(key)) {}
  ~WindowTaker() override { drop_frames(); }

  std::int64_t begin(std::int64_t frames, double fps) override {
    keep(same_windows(frames_, frames, options_.window, answered()));
    rate_ = fps;
    frames_ = frames;
    still_ = frames == 1;
    count_ = count_windows(frames, options_.window);
    if (answered() < count_) open_window();
    const FrameWindow last = window(count_ - 1);
    return last.begin + model_.plan(last.end - last.begin, rate_, options_.fps_of(model_)).back();
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    if (answered() == count_ || plan_[seen_.frames.size()] != number) return;
    scaler_.to_rgb(frame, as_shown(info), image_);
    seen_.width = image_.width;
    seen_.height = image_.height;
    seen_.frames.push_back(
        model_.prepare({image_.width, image_.height, image_.pixels}, still_ ? 0 : plan_.size()));
    if (options_.costs)
      options_.costs->hold_frames(static_cast<std::int64_t>(seen_.frames.back().size()));
    if (seen_.frames.size() < plan_.size()) return;
    ask();
    if (answered() < count_) open_window();
  }

  void give_up() override { keep(0); }

  /// Throws Error if the clip has fewer frames than its container says.
  ModelCaption result() const {
    if (answers_.empty() || answered() != count_) fail("its frames cannot be decoded to the end");
    ModelCaption caption;
    Json parts = Json::array();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const std::string text = text::clean_line(answers_[i].text);
      if (!caption.text.empty() && !text.empty()) caption.text += ' ';
      caption.text += text;
      const auto seconds = [&](std::int64_t frame) {
        return six_digits(static_cast<double>(frame) / rate_);
      };
      const FrameWindow of = window(static_cast<std::int64_t>(i));
      parts.push_back({{"start", seconds(of.begin)}, {"end", seconds(of.end)}, {"caption", text}});
      if (answers_[i].cut) parts.back()["cut"] = true;
      caption.cuts += answers_[i].cut ? 1 : 0;
    }
    caption.cut = parts.size() == 1 && answers_[0].cut;
    // vfm-caption score would show fewer frames of a longer window to the model.
    if (parts.size() == 1 && frames_ <= options_.window)
      caption.written = written_json(answers_[0], still_);
    add_further(caption, parts);
    if (parts.size() > 1) caption.windows = std::move(parts);
    return caption;
  }

 private:
  struct Further {
    AnswerValue said;
    bool cut = false;
    Cause cause = Cause::answer;  ///< of said.fault
  };

  void keep(std::int64_t windows) {
    answers_.resize(static_cast<std::size_t>(windows));
    further_.resize(static_cast<std::size_t>(windows));
  }

  /// Asks all questions about the window together, so that the model encodes the frames and the
  /// common begin of the prompts once. Then repeats questions whose answers do not fit.
  void ask() {
    const std::vector<FurtherQuestion>& list = options_.also.list;
    const std::string key = fmt::format("{}\n{}", key_, answers_.size());
    std::vector<models::Question> asked{{&seen_,
                                         still_ ? options_.picture_prompt : options_.video_prompt,
                                         options_.rule, key, options_.keep_tokens}};
    std::vector<std::size_t> open(list.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    std::vector<std::string> keys = put_further(asked, open, key, 1);
    std::vector<models::Answer> answers = model_.answer_many(asked);
    if (options_.costs) options_.costs->add(model_, asked, answers);
    if (answers[0].error) std::rethrow_exception(answers[0].error);
    answers_.push_back(std::move(answers[0]));
    answers.erase(answers.begin());
    std::vector<Further>& further = further_.emplace_back(list.size());
    for (int n = 1; !open.empty(); ++n) {
      if (n > 1) {
        asked.clear();
        keys = put_further(asked, open, key, n);
        answers = model_.answer_many(asked);
      }
      std::vector<std::size_t> again;
      for (std::size_t i = 0; i < open.size(); ++i)
        if (!take_further(list[open[i]], answers[i], n, further[open[i]])) again.push_back(open[i]);
      open = std::move(again);
    }
  }

  /// Appends the questions with these numbers to `asked`, and returns their keys.
  std::vector<std::string> put_further(std::vector<models::Question>& asked,
                                       const std::vector<std::size_t>& numbers,
                                       const std::string& key, int n) const {
    const std::vector<FurtherQuestion>& list = options_.also.list;
    std::vector<std::string> keys;
    for (const std::size_t q : numbers)
      keys.push_back(fmt::format("{}\n{}\n{}", key, list[q].name, n));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      asked.push_back({&seen_, list[numbers[i]].prompt, options_.rule, keys[i]});
    return keys;
  }

  /// Takes the answer to a question's `n`th try. Returns false if the question must be asked again.
  bool take_further(const FurtherQuestion& question, const models::Answer& answer, int n,
                    Further& further) const {
    const int tries = options_.also.tries_of(question, options_.rule.choice.temperature);
    try {
      if (answer.error) std::rethrow_exception(answer.error);
      further = {value_of_answer(question, text::clean_line(answer.text), options_.also.keep_empty),
                 answer.cut};
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device) throw;
      further = {{Json(), question_fault(question, error.what(), 1)}, false, error.cause()};
      return true;
    }
    if (further.said.fault.empty()) return true;
    if (n < tries) return false;
    further.said.fault = question_fault(question, further.said.fault, tries);
    return true;
  }

  /// Adds fields and faults to `caption`, and the fields of windows to `parts`.
  void add_further(ModelCaption& caption, Json& parts) const {
    Json cut = Json::array();
    for (std::size_t q = 0; q < options_.also.list.size(); ++q) {
      const FurtherQuestion& question = options_.also.list[q];
      std::vector<Json> values;
      for (std::size_t i = 0; i < further_.size(); ++i) {
        const Further& one = further_[i][q];
        if (one.cut) {
          ++caption.cuts;
          if (further_.size() == 1) cut.push_back(question.name);
          parts[i]["also_cut"].push_back(question.name);
        }
        if (!one.said.fault.empty()) caption.faults.push_back({"", one.said.fault, one.cause});
        if (one.said.fault.empty()) parts[i][question.field()] = one.said.value;
        values.push_back(one.said.fault.empty() ? *one.said.value : Json());
      }
      Json whole = question.schema ? of_windows(values) : joined(values);
      if (!whole.is_null()) caption.also[question.field()] = std::move(whole);
    }
    if (!cut.empty()) caption.also["caption_also_cut"] = std::move(cut);
  }

  static Json of_windows(const std::vector<Json>& values) {
    if (values.size() == 1) return values[0];
    return std::ranges::all_of(values, [](const Json& one) { return one.is_null(); })
               ? Json()
               : Json(values);
  }

  static Json joined(const std::vector<Json>& texts) {
    Json all;
    for (const Json& one : texts) {
      if (!one.is_string()) continue;
      const bool first = all.is_null() || all == "";
      all = (first ? "" : all.get<std::string>() + ' ') + one.get<std::string>();
    }
    return all;
  }

  FrameWindow window(std::int64_t i) const { return nth_window(frames_, options_.window, i); }
  std::int64_t answered() const { return static_cast<std::int64_t>(answers_.size()); }

  void drop_frames() {
    if (options_.costs)
      for (const std::vector<std::uint8_t>& frame : seen_.frames)
        options_.costs->hold_frames(-static_cast<std::int64_t>(frame.size()));
    seen_ = {};
  }

  void open_window() {
    const FrameWindow next = window(answered());
    plan_ = model_.plan(next.end - next.begin, rate_, options_.fps_of(model_));
    drop_frames();
    seen_.still = still_;
    seen_.fps =
        static_cast<double>(plan_.size()) / static_cast<double>(next.end - next.begin) * rate_;
    seen_.seconds = static_cast<double>(next.end - next.begin) / rate_;
    for (std::int64_t& frame : plan_) {
      seen_.times.push_back(static_cast<double>(frame) / rate_);
      frame += next.begin;
    }
  }

  const models::CaptionModel& model_;
  const ModelCaptionOptions& options_;
  std::string key_;
  double rate_ = 0;
  bool still_ = false;
  std::int64_t frames_ = 0, count_ = 0;  // frames of the clip, and windows
  std::vector<std::int64_t> plan_;       // frames of the open window
  models::SeenFrames seen_;
  std::vector<models::Answer> answers_;
  std::vector<std::vector<Further>> further_;  // of each window, in the order of questions
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::int64_t count_windows(std::int64_t frames, int window) {
  const std::int64_t whole = frames / window, left = frames % window;
  return std::max<std::int64_t>(1, whole + (2 * left >= window ? 1 : 0));
}

FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i) {
  const bool last = i + 1 == count_windows(frames, window);
  return {i * window, last ? frames : (i + 1) * window};
}

std::int64_t same_windows(std::int64_t promised, std::int64_t frames, int window,
                          std::int64_t answered) {
  const std::int64_t most = std::min(answered, count_windows(frames, window));
  std::int64_t same = 0;
  while (same < most && nth_window(promised, window, same) == nth_window(frames, window, same))
    ++same;
  return same;
}

ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware) {
  WindowTaker taker(model, options, key);
  Json facts = take_frames(member, where, known, hardware, taker);
  ModelCaption caption = taker.result();
  if (options.costs) options.costs->add_clip();
  caption.facts = std::move(facts);
  return caption;
}

Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options) {
  Json config = model.config();
  config["fps"] = options.fps_of(model);
  config["window"] = options.window;
  config["prompt"] = options.video_prompt;
  config["picture_prompt"] = options.picture_prompt;
  if (!options.also.list.empty())
    config["also"] = options.also.to_json(options.rule.choice.temperature);
  if (options.keep_tokens) config["logprobs"] = true;
  add_rule(config, options.rule);
  return config;
}

void add_rule(Json& config, const models::AnswerRule& rule) {
  config["max_tokens"] = rule.most_tokens;
  config["repetition_penalty"] = rule.choice.repetition_penalty;
  config["temperature"] = rule.choice.temperature;
  if (rule.choice.temperature > 0) {
    config["top_p"] = rule.choice.top_p;
    config["seed"] = rule.seed;
  }
}

}  // namespace vfm::columns
