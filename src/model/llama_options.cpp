#include "model/llama_options.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include <arg.h>
#include <common.h>
#include <llama.h>

#include "model/grammar/gbnf.h"
#include "model/llama_params.h"

namespace chasqui {
namespace {

SamplingStep step_of(common_sampler_type type) {
  switch (type) {
    case COMMON_SAMPLER_TYPE_DRY: return SamplingStep::dry;
    case COMMON_SAMPLER_TYPE_TOP_K: return SamplingStep::top_k;
    case COMMON_SAMPLER_TYPE_TOP_P: return SamplingStep::top_p;
    case COMMON_SAMPLER_TYPE_MIN_P: return SamplingStep::min_p;
    case COMMON_SAMPLER_TYPE_TYPICAL_P: return SamplingStep::typical_p;
    case COMMON_SAMPLER_TYPE_TEMPERATURE: return SamplingStep::temperature;
    case COMMON_SAMPLER_TYPE_XTC: return SamplingStep::xtc;
    case COMMON_SAMPLER_TYPE_INFILL: return SamplingStep::infill;
    case COMMON_SAMPLER_TYPE_TOP_N_SIGMA: return SamplingStep::top_n_sigma;
    case COMMON_SAMPLER_TYPE_ADAPTIVE_P: return SamplingStep::adaptive_p;
    default: return SamplingStep::penalties;
  }
}

int values_of(const common_arg& option) {
  if (option.handler_str_str != nullptr) return 2;
  return option.handler_string != nullptr || option.handler_int != nullptr ? 1 : 0;
}

LlamaOption row_of(const common_arg& option) {
  LlamaOption row;
  row.names.assign(option.args.begin(), option.args.end());
  row.off_names.assign(option.args_neg.begin(), option.args_neg.end());
  if (option.env != nullptr) row.variable = option.env;
  row.values = values_of(option);
  row.toggles = row.values == 0;
  return row;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Read when all devices are there, wherever they stand on the command line; of tensors the first that fits counts.
bool places_tensors(const LlamaOption& row) {
  constexpr const char* kNames[] = {
      "--device",           "--override-tensor",  "--cpu-moe",
      "--n-cpu-moe",        "--n-cpu-ffn",        "--spec-draft-device",
      "--spec-draft-override-tensor", "--spec-draft-cpu-moe", "--spec-draft-n-cpu-moe",
  };
  return std::ranges::any_of(kNames, [&row](const char* name) { return holds(row.names, name); });
}

// What an exception of llama-common says, without its line breaks; those of std::stoi say nothing.
Error bad_value(std::string_view name, std::span<const std::string> values, std::string_view why) {
  if (why.starts_with("error: ")) why.remove_prefix(7);
  std::string text(why.starts_with("sto") ? "a number was expected" : why);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::string said;
  for (const std::string& value : values) said += (said.empty() ? "" : " ") + value;
  return invalid_field(std::string(name), std::string(name) + ": " + text + (said.empty() ? "" : "; got " + said));
}

// These are formats in libllama's code. As Jinja, which llama-server reads them as, each would be its own name.
bool is_built_in_template(const std::string& name) {
  if (name.empty() || name == "chatml") return false;
  std::vector<const char*> names(static_cast<std::size_t>(llama_chat_builtin_templates(nullptr, 0)));
  llama_chat_builtin_templates(names.data(), names.size());
  return std::ranges::any_of(names, [&name](const char* known) { return name == known; });
}

// Whether the flag of one value was given: else the model's own recommendation holds.
bool user_set(const common_params_sampling& sampling, common_params_sampling_config which) {
  return (sampling.user_sampling_config & which) != 0;
}

}  // namespace

struct LlamaOptions::Table {
  explicit Table(common_params& params) : context(common_params_parser_init(params, LLAMA_EXAMPLE_SERVER)) {
    for (const common_arg& option : context.options) rows.push_back(row_of(option));
  }

  // One that was set and is not read yet.
  struct Later {
    std::size_t row;
    std::string name;
    bool on;
    std::vector<std::string> values;
  };

  common_params_context context;
  std::vector<LlamaOption> rows;  // of context.options, in their order
  std::vector<Later> placements;
};

LlamaOptions::LlamaOptions() : params_(std::make_unique<common_params>()), table_(std::make_unique<Table>(*params_)) {
  // So that it can be seen whether it was said; --poll is an option of ours.
  common_params_speculative_draft& draft = params_->speculative.draft;
  for (common_cpu_params* threads :
       {&params_->cpuparams, &params_->cpuparams_batch, &draft.cpuparams, &draft.cpuparams_batch}) {
    threads->poll = UINT32_MAX;
  }
}

LlamaOptions::~LlamaOptions() = default;

std::span<const LlamaOption> LlamaOptions::all() const { return table_->rows; }

const LlamaOption* LlamaOptions::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      table_->rows, [&](const LlamaOption& row) { return holds(row.names, name) || holds(row.off_names, name); });
  return found != table_->rows.end() ? &*found : nullptr;
}

const LlamaOption* LlamaOptions::find_variable(std::string_view variable) const {
  const auto found = std::ranges::find(table_->rows, variable, &LlamaOption::variable);
  return found != table_->rows.end() ? &*found : nullptr;
}

void LlamaOptions::forget_devices() { table_->placements.clear(); }

Result<void> LlamaOptions::take(std::size_t row, std::string_view name, bool on, std::span<const std::string> values) {
  const LlamaOption& known = table_->rows[row];
  if (values.size() != static_cast<std::size_t>(known.values)) return bad_value(name, {}, "a value is missing");
  if (holds(known.names, "--rpc")) {
    rpc_servers_ = values[0];
  } else if (places_tensors(known)) {
    table_->placements.push_back({row, std::string(name), on, {values.begin(), values.end()}});
  } else {
    return run(row, name, on, values);
  }
  return {};
}

Result<void> LlamaOptions::run(std::size_t row, std::string_view name, bool on, std::span<const std::string> values) {
  const common_arg& option = table_->context.options[row];
  try {
    if (option.handler_void != nullptr) option.handler_void(*params_);
    if (option.handler_bool != nullptr) option.handler_bool(*params_, on);
    if (option.handler_int != nullptr) option.handler_int(*params_, std::stoi(values[0]));
    if (option.handler_string != nullptr) option.handler_string(*params_, values[0]);
    if (option.handler_str_str != nullptr) option.handler_str_str(*params_, values[0], values[1]);
  } catch (const std::exception& error) {
    return bad_value(name, values, error.what());
  }
  return {};
}

Result<void> LlamaOptions::set(std::string_view name, std::span<const std::string> values) {
  const LlamaOption* row = find(name);
  if (row == nullptr) return bad_value(name, {}, "llama-server has no such flag");
  return take(static_cast<std::size_t>(row - table_->rows.data()), name, !holds(row->off_names, name), values);
}

Result<void> LlamaOptions::set_variable(std::string_view variable, const std::string& value) {
  const LlamaOption* row = find_variable(variable);
  if (row == nullptr) return bad_value(variable, {}, "llama-server has no such variable");
  const std::size_t index = static_cast<std::size_t>(row - table_->rows.data());
  if (!row->toggles) return take(index, variable, true, {&value, 1});
  const bool on = common_arg_utils::is_truthy(value);
  if (table_->context.options[index].handler_void != nullptr && !on) return {};
  return take(index, variable, on, {});
}

Result<void> LlamaOptions::finish() {
  common_params& params = *params_;
  for (const Table::Later& later : std::exchange(table_->placements, {})) {
    if (auto read = run(later.row, later.name, later.on, later.values); !read) return read;
  }
  if (is_built_in_template(params.chat_template)) {
    return bad_value("--chat-template", {&params.chat_template, 1},
                     "of the templates that libllama knows by name only chatml is served; write the template, or use "
                     "--chat-template-file FILE");
  }
  if (const std::string& text = params.sampling.grammar.grammar; !text.empty()) {
    const TokenByName any_token = [](std::string_view) { return Token{0}; };  // the vocabulary is not there yet
    if (const auto read = parse_gbnf(text, any_token); !read) return bad_value("--grammar", {}, read.error().message);
  }
  if (params.escape) {
    for (std::string& stop : params.antiprompt) string_process_escapes(stop);
    for (std::string& breaker : params.sampling.dry_sequence_breakers) string_process_escapes(breaker);
  }
  if (auto checked = check_params(params); !checked) return checked;
  // Lists that libllama reads up to an empty item.
  if (!params.kv_overrides.empty()) params.kv_overrides.emplace_back().key[0] = 0;
  if (!params.tensor_buft_overrides.empty()) params.tensor_buft_overrides.push_back({nullptr, nullptr});
  for (common_cpu_params* threads :
       {&params.cpuparams_batch, &params.speculative.draft.cpuparams, &params.speculative.draft.cpuparams_batch}) {
    if (threads->poll != UINT32_MAX && threads->poll > 100) {
      return bad_value("--poll-batch", {}, "it and those of the draft model must be between 0 and 100");
    }
  }
  auto& of_draft = params.speculative.draft.tensor_buft_overrides;
  if (!of_draft.empty()) of_draft.push_back({nullptr, nullptr});
  // As llama-server: what an answer thought is shown again, where the template can.
  params.default_template_kwargs.try_emplace("preserve_reasoning", "true");
  return {};
}

bool LlamaOptions::names_cpus() const { return params_->cpuparams.mask_valid; }

const std::string& LlamaOptions::chat_template() const { return params_->chat_template; }

RequestDefaults LlamaOptions::defaults(const ModelInfo& info) const {
  const common_params& params = *params_;
  const common_params_sampling& said = params.sampling;
  const RecommendedSampling& wish = info.sampling;
  RequestDefaults out;
  SamplingParams& sampling = out.sampling;
  const auto unless_set = [&said](common_params_sampling_config which, auto own, const auto& recommended) {
    return user_set(said, which) ? own : recommended.value_or(own);
  };
  sampling.temperature = unless_set(COMMON_PARAMS_SAMPLING_CONFIG_TEMP, said.temp, wish.temperature);
  sampling.top_k = unless_set(COMMON_PARAMS_SAMPLING_CONFIG_TOP_K, said.top_k, wish.top_k);
  sampling.top_p = unless_set(COMMON_PARAMS_SAMPLING_CONFIG_TOP_P, said.top_p, wish.top_p);
  sampling.min_p = unless_set(COMMON_PARAMS_SAMPLING_CONFIG_MIN_P, said.min_p, wish.min_p);
  sampling.repeat_last_n =
      unless_set(COMMON_PARAMS_SAMPLING_CONFIG_PENALTY_LAST_N, said.penalty_last_n, wish.repeat_last_n);
  sampling.repeat_penalty =
      unless_set(COMMON_PARAMS_SAMPLING_CONFIG_PENALTY_REPEAT, said.penalty_repeat, wish.repeat_penalty);
  sampling.dynatemp_range = said.dynatemp_range;
  sampling.dynatemp_exponent = said.dynatemp_exponent;
  sampling.top_n_sigma = said.top_n_sigma;
  sampling.typical_p = said.typ_p;
  sampling.xtc_probability = said.xtc_probability;
  sampling.xtc_threshold = said.xtc_threshold;
  sampling.min_keep = said.min_keep;
  sampling.frequency_penalty = said.penalty_freq;
  sampling.presence_penalty = said.penalty_present;
  sampling.dry_multiplier = said.dry_multiplier;
  sampling.dry_base = said.dry_base;
  sampling.dry_allowed_length = said.dry_allowed_length;
  sampling.dry_penalty_last_n = said.dry_penalty_last_n;
  sampling.dry_sequence_breakers = said.dry_sequence_breakers;
  sampling.mirostat = said.mirostat;
  sampling.mirostat_tau = said.mirostat_tau;
  sampling.mirostat_eta = said.mirostat_eta;
  sampling.adaptive_target = said.adaptive_target;
  sampling.adaptive_decay = said.adaptive_decay;
  if (said.samplers != common_params_sampling{}.samplers) {
    auto& steps = sampling.steps.emplace();
    for (const common_sampler_type type : said.samplers) steps.push_back(step_of(type));
  }
  if (said.seed != LLAMA_DEFAULT_SEED) sampling.seed = said.seed;
  sampling.ignore_eos = said.ignore_eos;
  for (const llama_logit_bias& bias : said.logit_bias) sampling.logit_bias.push_back({bias.token, bias.bias});
  out.stop = params.antiprompt;
  out.grammar = said.grammar.grammar;
  out.special_pieces = params.special;
  out.template_args = params.default_template_kwargs;
  out.template_args.erase("enable_thinking");
  if (params.enable_reasoning >= 0) out.enable_thinking = params.enable_reasoning == 1;
  out.split_reasoning = params.reasoning_format != COMMON_REASONING_FORMAT_NONE;
  if (said.reasoning_budget_tokens >= 0) out.reasoning_budget = said.reasoning_budget_tokens;
  out.reasoning_message = said.reasoning_budget_message;
  out.parse_answers = !params.force_pure_content_parser;
  out.prefill = params.prefill_assistant;
  out.embedding_norm = params.embd_normalize;
  out.suffix_first = params.spm_infill;
  return out;
}

}  // namespace chasqui
