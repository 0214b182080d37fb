// Inside lib/media only: reads sound in this process, with a time limit (bounded.h), or in a child
// process (isolated.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "media/container/input.h"
#include "media/decode/bounded.h"
#include "media/isolate/isolated_helper.h"

namespace vfm::media {

/// An object of class State in this process (`here`), or a child that replaces it (`child`). State
/// is made from a Source and the index of the video stream. Thread-safety: one thread at a time.
template <class State>
struct HereOrApart {
  /// Makes the State or, with --isolate, a child for `want`. Throws the Errors of the constructor
  /// of State.
  HereOrApart(const Source& source, int video, Want want) {
    if (!is_isolating()) {
      here.emplace(source.name, [source, video] { return std::make_shared<State>(source, video); });
      return;
    }
    Request request;
    request.want = want;
    request.stream = video;
    child = std::make_unique<IsolatedChild>(source.name, source.bytes, request);
  }
  /// Throws Error for an impossible answer of the child.
  [[noreturn]] void disbelieve() const {
    fail_as(Cause::crash, "the process that read the sound of '{}' says what cannot be",
            child->name());
  }
  std::optional<Bounded<State>> here;
  std::unique_ptr<IsolatedChild> child;
};

}  // namespace vfm::media
