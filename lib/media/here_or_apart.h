// Inside lib/media only: reading sound in this process, a State in work that can be left behind
// (bounded.h), or in one of its own (isolated.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "media/bounded.h"
#include "media/input.h"
#include "media/isolated_helper.h"

namespace vfm::media {

/// One of the two. State is made of a Source and the index of the video stream beside the sound.
/// Thread-safety: one thread at a time.
template <class State>
struct HereOrApart {
  /// `want`: what State is to a child. Throws Error as State's constructor does.
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
  /// Of an answer that no such child gives.
  [[noreturn]] void disbelieve() const {
    fail_as(Cause::crash, "the process that read the sound of '{}' says what cannot be",
            child->name());
  }
  std::optional<Bounded<State>> here;
  std::unique_ptr<IsolatedChild> child;
};

}  // namespace vfm::media
