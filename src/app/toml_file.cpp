#include "app/toml_file.h"

#include <charconv>
#include <optional>

#include <toml++/toml.h>

namespace chasqui {
namespace {

std::size_t line_of(const toml::node& node) { return node.source().begin.line; }

Error bad_line(std::size_t line, const std::string& why) {
  return invalid_field("--config", "line " + std::to_string(line) + ": " + why);
}

Error bad_key(std::string_view key, const toml::node& node, const std::string& why) {
  return bad_line(line_of(node), "\"" + std::string(key) + "\" " + why);
}

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  const auto number = node.value_exact<double>();
  if (!number) return std::nullopt;
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), *number).ptr;
  return std::string(std::begin(buffer), end);
}

Result<TomlItem> item_of(std::string_view key, const toml::node& node) {
  TomlItem item{std::string(key), {}, line_of(node)};
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    const auto value = text_of(node);
    if (!value) return bad_key(key, node, "must be a text, a number, true, false, or a list of these");
    item.values.push_back(*value);
    return item;
  }
  for (const toml::node& each : *list) {
    const auto value = text_of(each);
    if (!value) return bad_key(key, each, "must be a list of texts, numbers, true and false");
    item.values.push_back(*value);
  }
  return item;
}

Result<std::vector<TomlItem>> items_of(const toml::table& table, std::string_view section) {
  std::vector<TomlItem> out;
  for (const auto& [key, node] : table) {
    if (const toml::table* inner = node.as_table()) {
      if (section.empty() || key.str() != section) {
        const std::string known = section.empty() ? "" : "; there is [" + std::string(section) + "], or none";
        return bad_line(line_of(node), "there is no section [" + std::string(key.str()) + "]" + known);
      }
      auto items = items_of(*inner, {});
      if (!items) return items.error();
      for (TomlItem& item : *items) out.push_back(std::move(item));
      continue;
    }
    auto item = item_of(key.str(), node);
    if (!item) return item.error();
    out.push_back(std::move(*item));
  }
  return out;
}

}  // namespace

Result<std::vector<TomlItem>> read_toml(std::string_view text, std::string_view section) {
  try {
    return items_of(toml::parse(text), section);
  } catch (const toml::parse_error& error) {
    return bad_line(error.source().begin.line, std::string(error.description()));
  }
}

}  // namespace chasqui
