// --spans: reads from a file which parts of which videos become clips.
//
// Formats, recognized by the first line:
//   JSON Lines  {"source":"a.mp4","begin":1.5,"end":"00:00:03.000"}, the json of clips, and what
//               vfm-clip shots prints; other fields go on into the clip's json
//   CSV         with a header (source, begin, end) or without one in this order; PySceneDetect's
//               list of scenes, and vfm-clip shots --format csv
//   EDL         CMX 3600: the source's times and "* FROM CLIP NAME:"
// Thread-safety: one thread at a time; results of take() from any thread.
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

/// The begin or end of a span, as written.
struct SpanTime {
  enum class Unit {
    container,  ///< seconds on the container's clock, as "begin" and "end" of clips
    video,      ///< seconds after the first frame, as in PySceneDetect and players
    frame,      ///< number of frames after the first one
    timecode,   ///< whole seconds, and frames at the rounded rate, as in EDL
    open        ///< the end of the video
  };
  Unit unit = Unit::container;
  double seconds = 0;
  std::int64_t frames = 0;  ///< unit timecode: in addition to `seconds`
  bool drop = false;  ///< a drop-frame timecode, which skips numbers to keep up with the clock

  /// Returns the place, in frames if by_frame(), else in seconds on the container's clock. `first`:
  /// the first frame's time.
  double place(double first, Rational frame_rate) const;
  bool by_frame() const { return unit == Unit::frame || unit == Unit::timecode; }
};

struct GivenSpan {
  SpanTime begin, end;
  HeldJson fields = HeldJson::object();  ///< other fields of the record than source and times
  std::string where;                     ///< "line 3 of 'spans.csv'"
  std::string text() const;              ///< the facts that decide the clip, to compare
};

/// Parses seconds ("1.5", "90.25", "00:01:30.250", "01:30"), a timecode with frames
/// ("00:01:30:06"), or a drop-frame timecode ("00:01:30;06"). Throws Error.
SpanTime parse_span_time(std::string_view text);

/// A span in frames, or in seconds on the container's clock.
struct SpanPiece {
  double begin = 0, end = 0;
  bool by_frame = false;
  const GivenSpan* given = nullptr;
  int pass = 0;  ///< the pass over the video that cuts it

  std::string text() const;  ///< "line 3 of 'spans.csv': the span from 1.500 s to 3.000 s"
};

/// Returns the pieces for `spans` of a video whose first frame is at `first` seconds, sorted by
/// pass and time. Overlapping spans are cut in different passes, so that memory holds one clip.
/// Equal spans give one piece. `errors` gets impossible spans. The result has pointers into
/// `spans`.
std::vector<SpanPiece> plan_pieces(const std::vector<GivenSpan>& spans, double first,
                                   Rational frame_rate, std::vector<std::string>& errors);

class GivenSpans {
 public:
  /// Reads the files. Spans without a source belong to `only_input`. If `only_input` is empty, such
  /// spans belong to the video named like the file (VIDEO.csv and VIDEO-Scenes.csv: VIDEO.mp4).
  /// `on_bad` is called for invalid lines. Throws Error{usage} if a file cannot be read.
  GivenSpans(const std::vector<std::string>& files, const std::string& only_input,
             const io::OnFault& on_bad);

  /// Returns the spans of the input's next video, in the order of the files, or null if it has no
  /// spans. Two paths to the same file are one source. Throws Error if the files give only a file
  /// name, without a folder, and an earlier video had this name, too.
  const std::vector<GivenSpan>* take(const std::string& path);
  /// Returns the sources that were not taken, as written in the files.
  std::vector<std::string> left() const;

  /// Adds a span, for the readers of the formats. `source` is empty if the line names no source.
  /// `by_name`: `source` is a file's name without folder, or its stem.
  void add(const std::string& source, bool by_name, GivenSpan&& span);

 private:
  struct Source {
    std::string name;
    std::vector<GivenSpan> spans;
    std::string taken_by;
  };

  std::string only_input_;
  std::vector<Source> sources_;                 // in the order of the files
  std::map<std::string, std::size_t> by_path_;  // absolute, normalized paths
  std::map<std::string, std::size_t> by_name_;
};

/// Reads one file into `spans`. Throws Error if it cannot be read.
void read_span_file(const std::string& path, GivenSpans& spans, const io::OnFault& on_bad);

}  // namespace vfm::clip
