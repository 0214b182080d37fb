// Reads the files of --spans. They say which parts of the videos become clips.
//
// The first line of a file shows its format:
//   JSON Lines  Each line has a span, such as {"source":"a.mp4","begin":1.5,"end":"00:00:03.000"}.
//               The json of clips and the output of vfm-clip shots have this format, too.
//               Fields other than source, begin and end are added to the clip's json.
//   CSV         The header names the columns. The columns of a file without a header are source,
//               begin and end. PySceneDetect's list of scenes and the output of vfm-clip shots
//               --format csv have this format.
//   EDL         CMX 3600, with the source's times and "* FROM CLIP NAME:".
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
    container,  ///< Seconds on the container's clock, as in the json of clips.
    video,      ///< Seconds after the first frame, as in PySceneDetect and players.
    frame,      ///< Number of frames after the first frame.
    timecode,   ///< Whole seconds and frames, at the rounded frame rate, as in EDL.
    open        ///< The end of the video.
  };
  Unit unit = Unit::container;
  double seconds = 0;
  std::int64_t frames = 0;  ///< Frames in addition to `seconds`, for a timecode.
  bool drop = false;        ///< If true, the timecode is drop-frame.

  /// Returns the place in frames if by_frame() is true, otherwise in seconds on the container's
  /// clock. `first` is the first frame's time.
  double place(double first, Rational frame_rate) const;
  bool by_frame() const { return unit == Unit::frame || unit == Unit::timecode; }
};

struct GivenSpan {
  SpanTime begin, end;
  HeldJson fields = HeldJson::object();  ///< Fields of the record except source and times.
  std::string where;                     ///< Text such as "line 3 of 'spans.csv'".
  std::string text() const;              ///< Returns the facts that affect the clip, as text.
};

/// Parses seconds ("1.5", "00:01:30.250", "01:30"), a timecode with frames ("00:01:30:06"), or a
/// drop-frame timecode ("00:01:30;06"). Throws Error.
SpanTime parse_span_time(std::string_view text);

/// A span in frames, or in seconds on the container's clock.
struct SpanPiece {
  double begin = 0, end = 0;
  bool by_frame = false;
  const GivenSpan* given = nullptr;
  int pass = 0;  ///< Number of the pass that cuts the piece.

  /// Returns a text such as "line 3 of 'spans.csv': the span from 1.500 s to 3.000 s".
  std::string text() const;
};

/// Returns the pieces of a video, sorted by pass and time. The video's first frame is at `first`
/// seconds. Overlapping spans are in different passes, so that memory holds one clip. Equal spans
/// give one piece. Adds impossible spans to `errors`. The result points into `spans`.
std::vector<SpanPiece> plan_pieces(const std::vector<GivenSpan>& spans, double first,
                                   Rational frame_rate, std::vector<std::string>& errors);

class GivenSpans {
 public:
  /// Reads the files. Spans without a source belong to `only_input`. If `only_input` is empty, such
  /// spans belong to the video named like the span file. For example, VIDEO.csv and
  /// VIDEO-Scenes.csv are for VIDEO.mp4. `on_bad` is called for invalid lines. Throws Error{usage}
  /// if a file cannot be read.
  GivenSpans(const std::vector<std::string>& files, const std::string& only_input,
             const io::OnFault& on_bad);

  /// Returns the spans of the input's next video, `path`, in the order of the files. Returns null
  /// if the video has no spans. Two paths to the same file are one source. Throws Error if the
  /// spans name the video without a folder, and an earlier video of the input has the same name.
  const std::vector<GivenSpan>* take(const std::string& path);
  /// Returns the sources that were not taken.
  std::vector<std::string> left() const;

  /// Adds a span of `source`, which may be empty. If `by_name` is true, `source` is a file's name
  /// or stem, without a folder.
  void add(const std::string& source, bool by_name, GivenSpan&& span);

 private:
  struct Source {
    std::string name;
    std::vector<GivenSpan> spans;
    std::string taken_by;
  };

  std::string only_input_;
  std::vector<Source> sources_;
  std::map<std::string, std::size_t> by_path_;
  std::map<std::string, std::size_t> by_name_;
};

/// Reads a file into `spans`. Throws Error if the file cannot be read.
void read_span_file(const std::string& path, GivenSpans& spans, const io::OnFault& on_bad);

}  // namespace vfm::clip
