// What each part of the server is configured with, read off the command line and the model. Pure, but for the size of
// the machine's memory; at start only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/core/node.h"
#include "api/core/served_model.h"
#include "app/config.h"
#include "app/listeners.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "engine/session_table.h"
#include "model/loaded_model.h"

namespace chasqui {

// Each is of one model, but for node_config and admin_limits, which are of the whole server.
//
// What the command line calls a model, its own name first; none: as its file says.
std::vector<std::string> names_of_model(const ServeConfig& config);
// "a, b,c": as llama-server takes several aliases.
std::vector<std::string> names_in(std::string_view list);
// Its weights and contexts can be freed, and made again.
bool can_sleep(const ServeConfig& config);
// `shape` is that of all workers together.
RequestLimits request_limits(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape);
AdmissionConfig admission_config(const ServeConfig& config, const ModelShape& shape);
// Bytes of --cache-disk that encoded pictures and sounds have, where a model reads them.
std::uint64_t disk_for_encodings(const ServeConfig& config);
EngineConfig engine_config(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape);
net::HttpLimits admin_limits(const net::HttpLimits& others);
NodeConfig node_config(const ServeConfig& config, const Listeners& listeners);
ServedModelConfig model_config(const ServeConfig& config, const LoadedModel& model);
SessionLimits session_limits(const ServeConfig& config, const ModelShape& shape);

}  // namespace chasqui
