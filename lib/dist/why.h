// Why a run died: what the flight records of its ranks (dist/flight_recorder.h,
// dist/pulse_thread.h) tell together.
//
// A rank is missing in a collective if others of its group have begun it and this one has not. The
// root is a missing rank that does not itself wait for others. If there is none, ranks wait for
// each other. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::dist {

/// {"kind":"why","run":RUN,"died":true,"reason":"silent","message":"...","time":T,"lost":[5],
///  "without_record":[5],"errors":[{"rank":3,"error":"..."}],
///  "collectives":[{"axis":"tp","number":31,"what":"...","wait":[0,1],"missing":[2],"ended":[],
///                  "calls":[{"what":"...","ranks":[0,1]}]}],
///  "ranks":[{"ranks":[0,1],"state":"waits in ..."}],"words":["..."]}
/// "collectives" has those that have not ended, the one that began first in front. "calls" is there
/// if the ranks called it with different operations or sizes. "words" says the same in sentences.
/// Without records: {"kind":"why","run":RUN,"died":false,"words":["no record: ..."]}.
/// Throws Error for a file that is no record.
Json why_it_died(const std::string& run);

/// The same of the texts of records and of run.json; "" if there is none.
Json why_of_records(const std::vector<std::string>& records, const std::string& end);

}  // namespace vfm::dist
