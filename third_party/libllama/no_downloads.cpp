// What the flags of llama-common refer to of its downloader and of its presets, none of which is ever called: the project
// reads flags one by one and never lets llama-common handle a model's name. See common_parts.cmake.
#include "arg.h"
#include "common.h"
#include "download.h"
#include "hf-cache.h"
#include "preset.h"

#include <stdexcept>

namespace {

[[noreturn]] void not_built_in() { throw std::runtime_error("llama-common's downloader is not built in; use `chasqui pull`"); }

}  // namespace

std::string hf_cache::finalize_file(const hf_file&) { not_built_in(); }
common_download_hf_plan common_download_get_hf_plan(const common_params_model&, const common_download_opts&) { not_built_in(); }
void common_download_run_tasks(const std::vector<common_download_task>&) { not_built_in(); }
std::vector<std::string> common_download_get_all_parts(const std::string&) { not_built_in(); }
std::vector<common_cached_model_info> common_list_cached_models() { return {}; }
std::string common_docker_resolve_model(const std::string&) { not_built_in(); }
common_preset_context::common_preset_context(llama_example) : ctx_params(default_params) { not_built_in(); }
common_presets common_preset_context::load_from_ini(const std::string&, common_preset&) const { not_built_in(); }
void common_preset::apply_to_params(common_params&, const std::set<std::string>&) const { not_built_in(); }
