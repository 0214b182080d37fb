// Who makes the clips of a run. generate/clip_maker.h: this process, with the ranks beside it;
// generate/ranks/clip_workers.h: workers of this machine. generate/generate.h reads the prompts,
// names the clips, and writes the manifest for both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "generate/files/clip_output.h"
#include "generate/ranks/clip_messages.h"
#include "generate/request/named_request.h"
#include "share/slots.h"

namespace vfm::generate {

/// Thread-safety: make() from any thread; the rest from one thread at a time.
class ClipMakers {
 public:
  virtual ~ClipMakers() = default;

  /// Whether this rank reads the prompts.
  virtual bool first() const { return true; }
  /// Returns true if this rank only helps to make another rank's clips. Then it has done so until
  /// that rank was finished().
  virtual bool helped() { return false; }
  /// Makes all that `next` gives, if ranks meet for that, and hands the results to `done`, in the
  /// order of the prompts. Returns false if any thread may ask and make.
  virtual bool make_in_rounds(const std::function<std::optional<Asked>()>& /*next*/,
                              const std::function<void(Result&)>& /*done*/,
                              share::Slots& /*slots*/) {
    return false;
  }

  virtual ClipFolder& output() = 0;
  virtual const ModelInUse& in_use() const = 0;  ///< known once a request is asked for
  /// The request of a prompt, without a name unless the prompt has one; or the error why there is
  /// none. On the first request FP8 or 8-bit weights are measured, and are used from then on. Not
  /// while the clip of the first request is made.
  virtual Asked ask(Prompt prompt) = 0;
  /// The error of FP8 or 8-bit weights on the first request, once it is measured.
  virtual std::optional<double> output_error() const = 0;
  /// Makes the clip of a request as a file, or its latent if the output is "-". Without a request
  /// returns the error.
  virtual Result make(Asked& asked) = 0;
  /// Writes the page of the job about the clips of output(). `incomplete` says why some are
  /// missing, or is empty.
  virtual void report(const std::string& incomplete) = 0;
  /// All clips are made and reported.
  virtual void finished() = 0;
};

}  // namespace vfm::generate
