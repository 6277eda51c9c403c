// The lists of `chasqui top`: a line for each model, each tenant and each sequence, with what they got since the look
// before. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/sequence_sample.h"
#include "cli/served_list.h"

namespace chasqui::cli {

// The beginning of a text, whole characters, each of which counts as one column.
std::string cut(const std::string& text, std::size_t columns);

// A head and at most `most` lines more, the last of which says how many are left out. `seconds` since `before`.
std::vector<std::string> model_lines(const std::vector<ServedLine>& models, const SequenceSample& now,
                                     const std::optional<SequenceSample>& before, double seconds, std::size_t most);
std::vector<std::string> tenant_lines(const SequenceSample& now, const std::optional<SequenceSample>& before,
                                      double seconds, std::size_t most);
std::vector<std::string> sequence_lines(const SequenceSample& now, const std::optional<SequenceSample>& before,
                                        double seconds, std::size_t most);

}  // namespace chasqui::cli
