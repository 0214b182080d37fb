// SPDX-License-Identifier: Apache-2.0
#include "dist/wire.h"

#include "base/error.h"
#include "base/stopwatch.h"

namespace vfm::dist {

void Running::advance() {
  while (!finished_) {
    if (flight_ && !flight_->landed()) return;
    flight_.reset();
    std::vector<Message> messages;
    if (!next_(messages)) {
      finished_ = true;
      next_ = nullptr;  // and the tensors it keeps
      return;
    }
    if (!messages.empty()) flight_ = wire_->post(what_.tag, what_.place, messages);
    for (const Message& message : messages)
      if (message.sends && message.payload)
        traffic_.sent(what_.axis, what_.operation, message.bytes);
  }
}

std::vector<int> Running::awaited() const {
  std::vector<int> ranks;
  if (flight_)
    for (const int rank : flight_->awaited())
      ranks.push_back(what_.ranks[static_cast<std::size_t>(rank)]);
  return ranks;
}

void Engine::check_thread() const {
  if (std::this_thread::get_id() != thread_)
    fail("a thread that did not make the world calls its collectives");
}

void Engine::start(const std::shared_ptr<Running>& running) {
  check_thread();
  running_.push_back(running);
  try {
    running->advance();
  } catch (...) {
    drop(running);
    throw;
  }
  if (running->finished()) forget(running);
}

void Engine::advance() {
  for (auto at = running_.begin(); at != running_.end();) {
    (*at)->advance();
    at = (*at)->finished() ? running_.erase(at) : std::next(at);
  }
}

bool Engine::finished(const Running& running) {
  check_thread();
  if (!running.finished()) advance();
  return running.finished();
}

void Engine::finish(const Running& running) {
  if (finished(running)) return;
  const Stopwatch watch;
  wait(running, [&] {
    advance();
    return running.finished();
  });
  traffic_.waited(running.what().axis, watch.seconds());
}

void Engine::finish_all() {
  while (!running_.empty()) {
    const std::shared_ptr<Running> first = running_.front();
    finish(*first);
  }
}

}  // namespace vfm::dist
