// Which adapters a request wants: `lora`, in llama-server's form or ours, or the end of `model`; and the bodies of
// /lora-adapters. Pure; any thread.
#pragma once

#include <string>

#include "api/body/fields.h"
#include "api/core/served_model.h"
#include "core/request.h"

namespace chasqui {

// "lora": "name" · {"name": …, "scale": …} · [{"id": 0, "scale": 0.5}, …], what is not in the list is not used ·
// "model": "MODEL:name" or "name". `draft` holds what a request gets that says nothing; mistakes are left in `fields`.
void read_adapters(const ServedModel& served, Fields& fields, RequestDraft& draft);

// POST /lora-adapters: the list from above.
Result<std::vector<float>> read_standing_scales(const AdapterRegistry& registry, const std::string& body);
// Without `paths` the files are shown by their names alone.
std::string adapters_body(const AdapterRegistry& registry, bool paths);

}  // namespace chasqui
