// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption_queue.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "shard/columns.h"
#include "share/slots.h"
#include "text/unicode.h"

namespace vfm::columns {

std::string cut_caption(const CaptionOptions& options, std::string text) {
  return options.max_characters > 0 ? text::first_characters(text, options.max_characters) : text;
}

std::string answers_path(const CaptionOptions& options, const io::Record& record) {
  std::string path = shard::column_tar_path(record.path(), "caption", options.directory);
  path.resize(path.size() - std::string_view(".tar").size());
  return path + ".answers.jsonl";
}

CaptionQueue::CaptionQueue(const CaptionOptions& options, Endpoint* endpoint,
                           const io::Record& record, shard::Writer& writer, ColumnNotes& notes,
                           Progress& progress)
    : options_(options), endpoint_(endpoint), writer_(writer), notes_(notes), progress_(progress) {
  if (endpoint) paid_ = std::make_shared<PaidAnswers>(answers_path(options, record));
}

void count_cut(ColumnNotes& notes, std::int64_t texts) {
  if (texts > 0)
    notes.of_record["caption_cut"] = notes.of_record->value("caption_cut", std::int64_t{0}) + texts;
}

CaptionQueue::Asked CaptionQueue::ask(const std::string& name, std::string request) {
  Asked asked;
  const std::string hash = request_hash(request);
  asked.paid = paid_->find(hash);
  if (!asked.paid)
    asked.answer = endpoint_->ask(
        std::move(request), name,
        [paid = paid_, hash](const EndpointAnswer& answer) { paid->add(hash, answer); });
  return asked;
}

void CaptionQueue::push(const std::string& key, const std::string& name, Caption caption) {
  Waiting one{key, name, std::move(caption)};
  const Questions& also = options_.endpoint.also;
  for (std::size_t i = 0; i < one.caption.requests.size(); ++i) {
    std::string& request = one.caption.requests[i];
    const bool again = i > 0 && also.tries_of(also.list[i - 1], options_.endpoint.temperature) > 1;
    std::string kept = again ? request : "";
    one.asked.push_back(ask(name, std::move(request)));
    one.asked.back().request = std::move(kept);
  }
  one.caption.requests.clear();
  waiting_.push_back(std::move(one));
  const std::size_t most = endpoint_ ? 2 * static_cast<std::size_t>(options_.endpoint.parallel) : 0;
  while (waiting_.size() > most)
    write_first();
}

void CaptionQueue::finish() {
  while (!waiting_.empty())
    write_first();
  if (!endpoint_) return;
  if (const auto first = std::ranges::find_if(notes_.errors, unanswered);
      !any_text_ && first != notes_.errors.end())
    fail_as(first->cause, "no sample of it has an answer: {}", first->message);
  Json usage = {{"answers", answers_},
                {"failed", failed_},
                {"prompt_tokens", prompt_tokens_},
                {"completion_tokens", completion_tokens_}};
  if (options_.endpoint.input_price && options_.endpoint.output_price)
    usage["cost"] = (static_cast<double>(prompt_tokens_) * *options_.endpoint.input_price +
                     static_cast<double>(completion_tokens_) * *options_.endpoint.output_price) /
                    1e6;
  notes_.of_record["caption_usage"] = std::move(usage);
}

void CaptionQueue::write_first() {
  Waiting& one = waiting_.front();
  if (!one.asked.empty()) {
    one.caption.by_model["caption_model"] = {{"name", options_.endpoint.model}};
    take_caption(one);
    for (std::size_t i = 1; i < one.asked.size(); ++i)
      take_further(one, options_.endpoint.also.list[i - 1], one.asked[i]);
    // A sample without any answer does not name the model.
    if (one.caption.source == kNoCaption && one.caption.by_model->size() == 1)
      one.caption.by_model->clear();
  }
  any_text_ = any_text_ || !one.caption.text.empty();
  Json json = {{"caption", one.caption.text}, {"caption_source", one.caption.source}};
  json.update(one.caption.by_model);
  json.update(one.caption.facts);
  writer_.add(shard::Sample{one.key, {{"txt", one.caption.text}, {"json", dump_json(json)}}});
  waiting_.pop_front();
  progress_.add();
}

EndpointAnswer CaptionQueue::wait_for(Asked& asked) {
  const auto comes_in = [&](int milliseconds) {
    return asked.answer.wait_for(std::chrono::milliseconds(milliseconds)) ==
           std::future_status::ready;
  };
  if (asked.answer.valid() && !comes_in(0)) {
    const share::Slots::Away away;  // Other programs may use the slot while the server works.
    while (!comes_in(100))
      check_stop();
  }
  EndpointAnswer answer = asked.paid ? *asked.paid : asked.answer.get();
  ++answers_;
  any_text_ = true;
  prompt_tokens_ += answer.prompt_tokens;
  completion_tokens_ += answer.completion_tokens;
  count_cut(notes_, answer.cut ? 1 : 0);
  return answer;
}

void CaptionQueue::take_caption(Waiting& one) {
  try {
    const EndpointAnswer answer = wait_for(one.asked[0]);
    if (answer.text.empty())
      fail_as(Cause::answer, "the server's caption for it is empty{}", answer.why_empty);
    one.caption.text = cut_caption(options_, answer.text);
    if (answer.cut) one.caption.by_model["caption_cut"] = true;
  } catch (const EndpointDown&) {
    throw;
  } catch (const Error& error) {
    notes_.errors.emplace_back(one.name, error);
    one.caption.source = kNoCaption;
    ++failed_;
  }
}

void CaptionQueue::take_further(Waiting& one, const FurtherQuestion& question, Asked& asked) {
  const Questions& also = options_.endpoint.also;
  const int tries = also.tries_of(question, options_.endpoint.temperature);
  Json& json = one.caption.by_model;
  try {
    for (int n = 1;; ++n) {
      const EndpointAnswer answer = wait_for(asked);
      AnswerValue said = value_of_answer(question, answer.text, also.keep_empty);
      if (endpoint_->has_secret(said)) said = {Json(), "it repeats the server's key"};
      if (said.fault.empty() || n == tries) {
        if (answer.cut) json["caption_also_cut"].push_back(question.name);
        if (!said.fault.empty()) {
          notes_.errors.emplace_back(one.name, question_fault(question, said.fault, tries),
                                     Cause::answer);
          ++failed_;
          return;
        }
        json[question.field()] = std::move(said.value);
        return;
      }
      std::string request = std::move(asked.request);
      asked = ask(one.name, request_with_seed(request, n));
      asked.request = std::move(request);
    }
  } catch (const EndpointDown&) {
    throw;
  } catch (const Error& error) {
    notes_.errors.emplace_back(one.name, question_fault(question, error.what(), 1), error.cause());
    ++failed_;
  }
}

std::map<std::string, std::int64_t> caption_origins(const std::string& tar,
                                                    const shard::ReadLimits& limits) {
  std::map<std::string, std::int64_t> counts;
  shard::JoinedReader reader({tar}, limits);
  shard::Sample sample;
  while (reader.next(sample)) {
    check_stop();
    const std::string* json = sample.find("json");
    if (json == nullptr) continue;
    const auto source = get_string(parse_json(*json, tar), "caption_source");
    if (source && *source != kNoCaption && *source != kMeasuredCaption) ++counts[*source];
  }
  return counts;
}

}  // namespace vfm::columns
