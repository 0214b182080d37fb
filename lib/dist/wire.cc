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
      next_ = nullptr;  // and the tensors it keeps
      finished_ = true;
      return;
    }
    if (!messages.empty()) flight_ = wire_->post(what_.tag, what_.place, messages);
  }
}

std::vector<int> Running::awaited() const {
  std::vector<int> ranks;
  if (flight_)
    for (const int rank : flight_->awaited())
      ranks.push_back(what_.ranks[static_cast<std::size_t>(rank)]);
  return ranks;
}

void UnderWay::start(const std::shared_ptr<Running>& running) {
  running_.push_back(running);
  running->advance();
  if (running->finished()) forget(running);
}

void UnderWay::advance() {
  for (auto at = running_.begin(); at != running_.end();) {
    (*at)->advance();
    at = (*at)->finished() ? running_.erase(at) : std::next(at);
  }
}

void Engine::check_thread() const {
  if (std::this_thread::get_id() != thread_)
    fail("a thread that did not make the world calls its collectives");
}

void CallingEngine::start(const std::shared_ptr<Running>& running) {
  check_thread();
  try {
    under_way_.start(running);
  } catch (...) {
    drop(running);
    throw;
  }
}

bool CallingEngine::finished(const Running& running) {
  check_thread();
  if (!running.finished()) under_way_.advance();
  return running.finished();
}

void CallingEngine::finish(const Running& running) {
  if (finished(running)) return;
  const Stopwatch watch;
  wait(running, [&] {
    under_way_.advance();
    return running.finished();
  });
  traffic().waited(running.what().axis, watch.seconds());
}

}  // namespace vfm::dist
