// SPDX-License-Identifier: Apache-2.0
#include "tensor/kernel_log.h"

#include <utility>

namespace vfm {
namespace {

thread_local KernelLog* logging = nullptr;

}  // namespace

KernelLog::KernelLog() : outer_(std::exchange(logging, this)) {}

KernelLog::~KernelLog() {
  logging = outer_;
}

KernelLog* KernelLog::current() {
  return logging;
}

void KernelTimer::begin(const char* name) {
  if (log_->inside_) {
    log_ = nullptr;
    return;
  }
  log_->inside_ = true;
  name_ = name;
  begin_ = std::chrono::steady_clock::now();
}

void KernelTimer::end() {
  const auto now = std::chrono::steady_clock::now();
  KernelLog::Entry entry;
  entry.call.name = name_;
  entry.seconds = std::chrono::duration<double>(now - begin_).count();
  log_->entries_.push_back(std::move(entry));
  log_->inside_ = false;
}

}  // namespace vfm
