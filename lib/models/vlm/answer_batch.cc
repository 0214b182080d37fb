// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/answer_batch.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "models/vlm/answer_score.h"
#include "tensor/device.h"

namespace vfm::models {

TextJob text_job(std::vector<std::int32_t> ids, std::shared_ptr<SharedSight> seen,
                 const AnswerRule& rule, std::string_view key) {
  TextJob job{std::move(ids), std::move(seen), rule.choice, rule.most_tokens};
  job.random.emplace(rule.seed, Purpose::caption, 0, random_key(fmt::format("answer\n{}", key)));
  return job;
}

std::mutex& all_processors() {
  static std::mutex turn;
  return turn;
}

void AnswerBatch::run(std::span<TextJob> jobs) {
  const auto all_done = [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const TextJob& job) { return job.done; });
  };
  std::unique_lock lock(mutex_);
  for (TextJob& job : jobs)
    if (!job.done) waiting_.push_back(&job);
  for (;;) {
    changed_.wait(lock, [&] { return all_done() || !leading_; });
    if (all_done()) return;
    leading_ = true;
    lock.unlock();
    lead(jobs);
    lock.lock();
    leading_ = false;
    changed_.notify_all();
  }
}

/// Until those of its own are done. What goes wrong is told to the jobs that it concerns: nothing
/// is thrown, so no job is left to threads that are gone.
void AnswerBatch::lead(std::span<const TextJob> own) {
  // None but who leads sets `done`.
  while (!std::all_of(own.begin(), own.end(), [](const TextJob& job) { return job.done; })) {
    const std::lock_guard one(turn_);
    const DeviceTurn gpu = take_turn(model_.text().device());
    fill();
    if (active_.empty()) continue;
    try {
      check_stop();
      choose(active_);
      std::vector<QwenAnswer*> answers;
      std::vector<std::int32_t> tokens;
      for (TextJob* const job : std::vector(active_)) {
        const bool full = static_cast<int>(job->written.size()) >= job->most_tokens;
        if (job->error || !job->cut || full) {
          finish(*job, job->error);
          continue;
        }
        answers.push_back(job->answer.get());
        tokens.push_back(job->written.back());
      }
      if (!answers.empty()) QwenAnswer::write_together(answers, tokens);
    } catch (...) {
      for (TextJob* const job : std::vector(active_))
        finish(*job, std::current_exception());
    }
  }
  // Each thread that computes has threads of its own that help it, and keeps them: without this
  // there would be as many times the processors as there are clips that are worked on.
  omp_pause_resource_all(omp_pause_soft);
}

/// Begins what waits, as far as there is room.
void AnswerBatch::fill() {
  while (active_.size() < together_) {
    TextJob* job = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      job = waiting_.front();
      waiting_.pop_front();
    }
    try {
      check_stop();
      begin(*job);
      active_.push_back(job);
    } catch (...) {
      finish(*job, std::current_exception());
    }
  }
}

void AnswerBatch::begin(TextJob& job) const {
  if (!job.seen) {
    job.answer = std::make_unique<QwenAnswer>(model_, job.ids, std::span<const QwenPicture>(),
                                              job.most_tokens);
    return;
  }
  job.answer = begin_seen(job, *job.seen);
  job.seen.reset();
}

std::unique_ptr<QwenAnswer> AnswerBatch::begin_seen(const TextJob& job, SharedSight& seen) const {
  if (!seen.tokens.defined()) {
    const QwenPicture picture = seen.open();
    seen.tokens = model_.look(picture);
    seen.sight = picture.sight;
  }
  const std::span<const std::int32_t> ids = job.ids;
  const std::size_t behind = qwen_head(ids, model_);
  const std::span<const std::int32_t> head = ids.first(behind), words = ids.subspan(behind);
  const std::int64_t more = static_cast<std::int64_t>(words.size()) + job.most_tokens;
  const auto read = [&](std::int64_t room) {
    return std::make_unique<QwenAnswer>(model_, head, std::span<const QwenSight>(&seen.sight, 1),
                                        std::span<const Tensor>(&seen.tokens, 1), room);
  };
  std::unique_ptr<QwenAnswer> answer;
  // A template may write a question's words before what is seen, too, and even none behind it.
  const bool shared = seen.head && std::ranges::equal(seen.ids, head);
  if (words.empty() || (!shared && (seen.head || job.seen.use_count() == 1))) {
    answer = read(more);
  } else {
    if (!shared) {
      seen.head = read(0);
      seen.ids.assign(head.begin(), head.end());
    }
    answer = std::make_unique<QwenAnswer>(*seen.head, more);
  }
  if (!words.empty()) answer->read(words);
  return answer;
}

/// The next token of each. Of one that has come to its end `cut` is false.
void AnswerBatch::choose(std::span<TextJob* const> jobs) const {
  std::vector<QwenAnswer*> answers;
  for (TextJob* const job : jobs)
    answers.push_back(job->answer.get());
  const Tensor logits = QwenAnswer::logits_together(answers).to(Device::cpu);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TextJob& job = *jobs[i];
    const auto row = static_cast<std::int64_t>(i);
    try {
      const std::span<float> own = logits.rows(row, row + 1).floats();
      // Which are changed where one is chosen.
      const std::vector<float> all(own.begin(), job.weigh ? own.end() : own.begin());
      const std::int32_t token =
          choose_token(own, job.ids, job.choice, job.random->uniform(job.written.size()));
      if (std::ranges::find(ends_, token) != ends_.end()) {
        job.cut = false;
        continue;
      }
      if (job.weigh) job.log_probabilities.push_back(log_probability(all, token));
      job.written.push_back(token);
      job.ids.push_back(token);
    } catch (const Error&) {
      job.error = std::current_exception();
    }
  }
}

void AnswerBatch::finish(TextJob& job, std::exception_ptr error) {
  std::erase(active_, &job);
  job.answer.reset();
  job.seen.reset();
  job.error = std::move(error);
  const std::lock_guard lock(mutex_);
  job.done = true;  // from here on it may be gone
  changed_.notify_all();
}

}  // namespace vfm::models
