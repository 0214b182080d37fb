// SPDX-License-Identifier: Apache-2.0
#include "columns/caption_queue.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "shard/columns.h"
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

void CaptionQueue::push(const std::string& key, const std::string& name, Caption caption) {
  Waiting one{key, name, std::move(caption)};
  if (!one.caption.request.empty()) {
    const std::string hash = request_hash(one.caption.request);
    one.paid = paid_->find(hash);
    if (!one.paid)
      one.answer = endpoint_->ask(std::move(one.caption.request),
                                  [paid = paid_, hash](const EndpointAnswer& answer) {
                                    if (!answer.text.empty()) paid->add(hash, answer);
                                  });
    one.caption.request.clear();
  }
  waiting_.push_back(std::move(one));
  const std::size_t most = endpoint_ ? 2 * static_cast<std::size_t>(options_.endpoint.parallel) : 0;
  while (waiting_.size() > most)
    write_first();
}

void CaptionQueue::finish() {
  while (!waiting_.empty())
    write_first();
  if (!endpoint_) return;
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
  if (one.paid || one.answer.valid()) take_answer(one);
  Json json = {{"caption", one.caption.text}, {"caption_source", one.caption.source}};
  if (one.caption.source == "endpoint") json["caption_model"] = {{"name", options_.endpoint.model}};
  json.update(one.caption.by_model);
  json.update(one.caption.facts);
  writer_.add(shard::Sample{one.key, {{"txt", one.caption.text}, {"json", dump_json(json)}}});
  waiting_.pop_front();
  progress_.add();
}

void CaptionQueue::take_answer(Waiting& one) {
  try {
    while (one.answer.valid() &&
           one.answer.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      check_stop();
    const EndpointAnswer answer = one.paid ? *one.paid : one.answer.get();
    ++answers_;
    prompt_tokens_ += answer.prompt_tokens;
    completion_tokens_ += answer.completion_tokens;
    if (answer.text.empty()) fail("the server's caption for it is empty");
    one.caption.text = cut_caption(options_, answer.text);
  } catch (const EndpointDown&) {
    throw;
  } catch (const Error& error) {
    notes_.errors.push_back({one.name, error.what()});
    one.caption.source = "none";
    ++failed_;
  }
}

}  // namespace vfm::columns
