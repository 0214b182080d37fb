// Why a run died: what the flight records of its ranks (dist/flight_recorder.h,
// dist/pulse_thread.h) tell together.
//
// A rank is missing in a collective if others of its group have begun it and this one has not. The
// root is a missing rank that does not itself wait for missing ones. What a rank has begun and does
// not wait for, such as a sum of gradients beside backward, holds it up nowhere. If there is no
// root, ranks wait for each other. A file that is no record, such as one that a full disk has cut,
// or that is of another start of the run, is left out and named. Thread-safety: free functions, any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::dist {

/// {"kind":"why","run":RUN,"died":true,"reason":"silent","message":"...","time":T,"lost":[5],
///  "without_record":[5],"left_out":[{"file":"...","why":"..."}],
///  "errors":[{"rank":3,"error":"..."}],
///  "collectives":[{"axis":"tp","number":31,"what":"...","wait":[0,1],"missing":[2],"ended":[],
///                  "calls":[{"what":"...","ranks":[0,1]}]}],
///  "ranks":[{"ranks":[0,1],"state":"waits in ..."}],"words":["..."]}
/// "collectives" has those that have not ended, the one that began first in front. "calls" is there
/// if the ranks called it with different operations or sizes. "words" says the same in sentences.
/// Without records: {"kind":"why","run":RUN,"died":false,"words":["no record: ..."]}.
/// Throws Error if all there is is left out.
Json why_it_died(const std::string& run);

/// A file of the records; what is wrong with it if it could not be read.
struct RecordFile {
  std::string name, text, error = {};
};
/// The same of records and of run.json, which has no name if there is none.
Json why_of_records(const std::vector<RecordFile>& records, const RecordFile& end);

}  // namespace vfm::dist
