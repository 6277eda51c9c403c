#include "cli/model_card.h"

#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "cli/http_client.h"
#include "cli/json_parts.h"
#include "cli/terminal.h"
#include "cli/text_table.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

// The model may have to be loaded first.
constexpr Duration kCardPatience = seconds(600);

std::string in_words(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  return value.is_number() ? json::serialize(value) : std::string();
}

// Keys of a model's metadata begin with its architecture, which the table need not repeat.
std::string last_part(std::string_view key) {
  std::string out(key.substr(key.rfind('.') + 1));
  for (char& c : out) c = c == '_' ? ' ' : c;
  return out;
}

std::string joined(const json::value& list) {
  std::string out;
  if (!list.is_array()) return out;
  for (const json::value& each : list.get_array()) out += (out.empty() ? "" : ", ") + in_words(each);
  return out;
}

}  // namespace

Result<std::string> model_card(const std::string& body) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::object* card = error ? nullptr : value.if_object();
  const json::object* details = card == nullptr ? nullptr : object_at(*card, "details");
  if (details == nullptr) return Error{ErrorCode::not_supported, "the server's answer is of another form", ""};
  std::vector<std::vector<std::string>> rows;
  const auto row = [&rows](std::string name, std::string content) {
    if (!content.empty()) rows.push_back({harmless(name), harmless(content)});
  };
  // What the file calls it: a server of one model takes any name for it.
  const json::object* info = object_at(*card, "model_info");
  const json::value* called = info == nullptr ? nullptr : info->if_contains("general.basename");
  if (called != nullptr) row("name", in_words(*called));
  for (const auto& [key, name] : {std::pair("family", "architecture"), std::pair("parameter_size", "parameters"),
                                  std::pair("quantization_level", "format")}) {
    if (const json::value* found = details->if_contains(key)) row(name, in_words(*found));
  }
  if (info != nullptr) {
    for (const auto& [key, content] : *info) {
      const std::string_view full(key.data(), key.size());
      if (full.starts_with("general.")) continue;  // said above
      row(full.starts_with("tokenizer.") ? "tokenizer" : last_part(full), in_words(content));
    }
  }
  if (const json::value* can = card->if_contains("capabilities")) row("capabilities", joined(*can));
  return text_table(std::move(rows));
}

Result<std::string> ask_for_card(const ModelCardOptions& options) {
  const auto answer = ask_about_model(options.url, options.api_key, "/api/show", options.model, kCardPatience);
  if (!answer) return answer.error();
  return options.json ? Result<std::string>(*answer + '\n') : model_card(*answer);
}

}  // namespace chasqui::cli
