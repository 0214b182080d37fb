// --spans: which parts of which videos become clips, from a file instead of from detection.
//
// Formats, recognised by the first line:
//   JSON Lines  {"source":"a.mp4","begin":1.5,"end":"00:00:03.000"}, the json of clips, and what
//               vfm-clip shots prints; other fields go on into the clip's json
//   CSV         with a header (source, begin, end) or without one in this order; PySceneDetect's
//               list of scenes, and vfm-clip shots --format csv
//   EDL         CMX 3600: the source's times and "* FROM CLIP NAME:"
// Thread-safety: one thread at a time; results of take() from any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/rational.h"
#include "io/error_log.h"

namespace vfm::clip {

/// One end of a span, as written.
struct SpanTime {
  enum class Unit {
    container,  ///< seconds of the container's clock, like "begin" and "end" of clips
    video,      ///< seconds after the video's first frame, as PySceneDetect and players count
    frame,      ///< frames after the first one
    timecode,   ///< whole seconds and frames at the rounded rate, as edit lists count
    open        ///< the end of the video
  };
  Unit unit = Unit::container;
  double seconds = 0;
  std::int64_t frames = 0;  ///< of unit timecode: beside `seconds`
  bool drop = false;        ///< a drop-frame timecode: skips numbers to keep up with the clock

  /// The place in frames (by_frame()) or in seconds of the container's clock. `first`: the first
  /// frame's time.
  double place(double first, Rational frame_rate) const;
  bool by_frame() const { return unit == Unit::frame || unit == Unit::timecode; }
};

struct GivenSpan {
  SpanTime begin, end;
  HeldJson fields = HeldJson::object();  ///< of the record, beside source and times
  std::string where;                     ///< "line 3 of 'spans.csv'"
  std::string text() const;              ///< everything that decides the clip, for comparison
};

/// "1.5", "90.25", "00:01:30.250", "01:30" are seconds; "00:01:30:06" is a timecode with frames,
/// and "00:01:30;06" one of the drop-frame kind. Throws Error.
SpanTime parse_span_time(std::string_view text);

/// A span in frames, or in seconds of the container's clock.
struct SpanPiece {
  double begin = 0, end = 0;
  bool by_frame = false;
  const GivenSpan* given = nullptr;
  int pass = 0;  ///< the pass over the video that cuts it

  std::string text() const;  ///< "line 3 of 'spans.csv': the span from 1.500 s to 3.000 s"
};

/// The pieces for `spans` of a video with its first frame at `first` seconds, pass by pass, in
/// order: overlapping spans are cut in different passes, so that memory holds one clip. Equal spans
/// give one piece. `errors` gets impossible spans. Keeps pointers to
/// `spans`.
std::vector<SpanPiece> plan_pieces(const std::vector<GivenSpan>& spans, double first,
                                   Rational frame_rate, std::vector<std::string>& errors);

class GivenSpans {
 public:
  /// Reads the files. Spans without a source belong to `only_input`, or, if that is empty, to the
  /// video that the file is named after (VIDEO.csv and VIDEO-Scenes.csv belong to VIDEO.mp4).
  /// Throws Error{usage} if a file cannot be read. `on_bad` is called for invalid lines.
  GivenSpans(const std::vector<std::string>& files, const std::string& only_input,
             const io::OnFault& on_bad);

  /// The spans of the next video of the input, as the files order them; null if there are none.
  /// Two paths to the same place are one source. Throws Error if the files give only a name that an
  /// earlier video had too.
  const std::vector<GivenSpan>* take(const std::string& path);
  /// Sources that were not taken, as the files write them.
  std::vector<std::string> left() const;

  /// For the readers of the formats: adds a span. `source` empty: the line names none; `by_name`:
  /// it is a file's name without its folder, or a stem.
  void add(const std::string& source, bool by_name, GivenSpan&& span);

 private:
  struct Source {
    std::string name;
    std::vector<GivenSpan> spans;
    std::string taken_by;
  };

  std::string only_input_;
  std::vector<Source> sources_;                 // in the order of the files
  std::map<std::string, std::size_t> by_path_;  // of absolute, plain paths
  std::map<std::string, std::size_t> by_name_;
};

/// Reads one file into `spans`. Throws Error if it cannot be read.
void read_span_file(const std::string& path, GivenSpans& spans, const io::OnFault& on_bad);

}  // namespace vfm::clip
