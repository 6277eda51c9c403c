// The fields that every generating route shares, as one table: what they are called, what they take, and what they do.
// Reading, the settings that llama-server's clients expect back, and the table in docs/api.md are made from it. Ranges
// of numbers are core/sampling's, and are checked once, in make_request(). Pure; offload pool.
#pragma once

#include <span>
#include <string>

#include "api/body/fields.h"
#include "base/json_writer.h"
#include "core/request.h"

namespace chasqui {

struct GenerationField {
  std::string_view name;
  std::string_view aliases;  // further names, with a comma between them; the last one that is there counts
  std::string_view fallback;
  std::string_view allowed;
  std::string_view meaning;
  // Mistakes are left in the fields. Null: a number of sampling_rules().
  void (*read)(Fields& fields, std::string_view name, RequestDraft& draft) = nullptr;
};
std::span<const GenerationField> generation_fields();

// `draft` already holds the defaults; mistakes are left in `fields`.
void read_generation_fields(Fields& fields, RequestDraft& draft);

// `priority`, or OpenAI's `service_tier`.
ServiceClass read_class(Fields& fields, ServiceClass unsaid);

// The settings of a request, in llama-server's words.
void write_generation_settings(JsonWriter& json, const Request& request, bool stream);

// The rows of docs/api.md.
std::string generation_field_rows();

// Fields that this route has not got yet must not be ignored silently: a client that asks for logprobs and gets none
// would believe that there are none. Complains about each of `names` that is there with anything but null, false, or
// an empty value.
void refuse_unsupported(Fields& fields, std::initializer_list<std::string_view> names);

}  // namespace chasqui
