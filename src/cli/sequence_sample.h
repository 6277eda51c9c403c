// What /debug/sequences said at one time: who ran and who waited. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::cli {

struct SequenceRow {
  std::int64_t id = 0;  // of its model
  std::string model;
  std::string tenant;                                                      // empty: the anonymous tenant
  std::string service_class;                                               // interactive, standard, background
  std::string state;                                                       // waiting, reading, writing
  std::int64_t prompt = 0, read = 0, cached = 0, generated = 0, most = 0;  // tokens
  double age_ms = 0;
};

struct TenantRow {
  std::string tenant;
  std::int64_t running = 0, waiting = 0, generated = 0;
};

struct ModelRow {
  std::string model;
  std::int64_t running = 0, waiting = 0;
};

struct SequenceSample {
  std::int64_t total = 0;              // also of those that are not listed
  std::vector<SequenceRow> sequences;  // those that run first
  std::vector<TenantRow> tenants;
  std::vector<ModelRow> models;  // those with sequences

  // Nothing when the text is no such list.
  static std::optional<SequenceSample> parse(std::string_view text);

  // Tokens that a sequence, or all that are listed of a tenant or of a model, have got since `before`.
  std::int64_t grown(const SequenceSample& before, const SequenceRow& row) const;
  std::int64_t grown(const SequenceSample& before, const TenantRow& row) const;
  std::int64_t grown(const SequenceSample& before, const ModelRow& row) const;

 private:
  std::int64_t grown(const SequenceSample& before, const std::string SequenceRow::*of, const std::string& name) const;
};

}  // namespace chasqui::cli
