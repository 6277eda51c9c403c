#include "cli/sequence_sample.h"

#include <algorithm>

#include <boost/json.hpp>

#include "cli/json_parts.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

template <class Number>
Number number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return {};
  boost::system::error_code error;
  const auto number = value->to_number<double>(error);
  return error ? Number{} : static_cast<Number>(number);
}

template <class Row, class Read>
bool read_rows(const json::object& object, std::string_view name, std::vector<Row>& rows, Read read) {
  const json::value* list = object.if_contains(name);
  if (list == nullptr || !list->is_array()) return false;
  for (const json::value& each : list->get_array()) {
    if (!each.is_object()) return false;
    rows.push_back(read(each.get_object()));
  }
  return true;
}

SequenceRow read_sequence(const json::object& object) {
  SequenceRow row;
  row.id = number_of<std::int64_t>(object, "id");
  row.model = text_at(object, "model");
  row.tenant = text_at(object, "tenant");
  row.service_class = text_at(object, "class");
  row.state = text_at(object, "state");
  row.prompt = number_of<std::int64_t>(object, "prompt_tokens");
  row.read = number_of<std::int64_t>(object, "read_tokens");
  row.cached = number_of<std::int64_t>(object, "cached_tokens");
  row.generated = number_of<std::int64_t>(object, "generated_tokens");
  row.most = number_of<std::int64_t>(object, "max_tokens");
  row.age_ms = number_of<double>(object, "age_ms");
  return row;
}

TenantRow read_tenant(const json::object& object) {
  return {text_at(object, "tenant"), number_of<std::int64_t>(object, "running"),
          number_of<std::int64_t>(object, "waiting"), number_of<std::int64_t>(object, "generated_tokens")};
}

ModelRow read_model(const json::object& object) {
  return {text_at(object, "model"), number_of<std::int64_t>(object, "running"),
          number_of<std::int64_t>(object, "waiting")};
}

}  // namespace

std::optional<SequenceSample> SequenceSample::parse(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  SequenceSample sample;
  sample.total = number_of<std::int64_t>(value.get_object(), "total");
  const bool good = read_rows(value.get_object(), "sequences", sample.sequences, read_sequence) &&
                    read_rows(value.get_object(), "tenants", sample.tenants, read_tenant) &&
                    read_rows(value.get_object(), "models", sample.models, read_model);
  return good ? std::optional(std::move(sample)) : std::nullopt;
}

std::int64_t SequenceSample::grown(const SequenceSample& before, const SequenceRow& row) const {
  const auto old = std::ranges::find_if(
      before.sequences, [&](const SequenceRow& each) { return each.id == row.id && each.model == row.model; });
  return row.generated - (old != before.sequences.end() ? std::min(old->generated, row.generated) : 0);
}

std::int64_t SequenceSample::grown(const SequenceSample& before, const TenantRow& row) const {
  return grown(before, &SequenceRow::tenant, row.tenant);
}

std::int64_t SequenceSample::grown(const SequenceSample& before, const ModelRow& row) const {
  return grown(before, &SequenceRow::model, row.model);
}

std::int64_t SequenceSample::grown(const SequenceSample& before, const std::string SequenceRow::*of,
                                   const std::string& name) const {
  std::int64_t all = 0;
  for (const SequenceRow& each : sequences) {
    if (each.*of == name) all += grown(before, each);
  }
  return all;
}

}  // namespace chasqui::cli
