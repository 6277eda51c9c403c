// Which adapters a request wants: `lora`, in llama-server's form or ours, or the end of `model`; and the bodies of
// /lora-adapters. Pure; any thread.
#pragma once

#include <string>

#include "api/body/fields.h"
#include "api/core/adapter_loader.h"
#include "api/core/served_model.h"
#include "core/request.h"

namespace chasqui {

// "lora": "name" · {"name": …, "scale": …} · [{"id": 0, "scale": 0.5}, …], what is not in the list is not used ·
// "model": "MODEL:name" or "name". `draft` holds what a request gets that says nothing; mistakes are left in `fields`.
void read_adapters(const ServedModel& served, Fields& fields, RequestDraft& draft);

// POST /lora-adapters: the list from above.
Result<std::vector<float>> read_standing_scales(const AdapterList& adapters, const std::string& body);
// Without `paths` the files are shown by their names alone.
std::string adapters_body(const AdapterList& adapters, bool paths);
std::string path_of_adapter(const AdapterInfo& adapter, bool paths);

// POST /v1/load_lora_adapter and /v1/unload_lora_adapter.
Result<AdapterOrder> read_adapter_order(const std::string& body, bool loads);

}  // namespace chasqui
