// What of a part is taken back where the token behind it waits for the mask of a grammar, and is computed again. Pure.
#pragma once

#include "core/batch.h"
#include "core/request.h"

namespace chasqui {

// Its last row. In a deterministic request all of them: a row at the end of a prompt's chunk, computed again alone,
// would not be bit by bit the one that a request gets whose mask was there.
inline TokenCount rows_put_off(const BatchPart& part) { return part.request->deterministic ? part.rows : 1; }

}  // namespace chasqui
