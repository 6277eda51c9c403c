#include "api/schema/schema_source.h"

#include <algorithm>
#include <charconv>

namespace chasqui {
namespace {

namespace json = boost::json;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// A part of a JSON pointer in a URI. False: it is malformed.
bool read_pointer_part(std::string_view written, std::string& out) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] == '%') {
      if (i + 2 >= written.size() || hex_value(written[i + 1]) < 0 || hex_value(written[i + 2]) < 0) return false;
      out += static_cast<char>(hex_value(written[i + 1]) << 4 | hex_value(written[i + 2]));
      i += 2;
    } else if (written[i] == '~') {
      if (i + 1 >= written.size() || (written[i + 1] != '0' && written[i + 1] != '1')) return false;
      out += written[++i] == '0' ? '~' : '/';
    } else {
      out += written[i];
    }
  }
  return true;
}

std::string pointer_part(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

// Names are the client's, and refusals are short.
std::string shortened(std::string text) {
  constexpr std::size_t kShownBytes = 240;
  if (text.size() <= kShownBytes) return text;
  const auto within = [&text](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  std::size_t first = kShownBytes / 2;
  std::size_t last = text.size() - kShownBytes / 2;
  while (within(first)) --first;
  while (last < text.size() && within(last)) ++last;
  return text.substr(0, first) + "…" + text.substr(last);
}

}  // namespace

const json::value* keyword_of(const json::value* schema, std::string_view name) {
  return schema->is_object() ? schema->get_object().if_contains(name) : nullptr;
}

const json::object* object_keyword(const json::value* schema, std::string_view name) {
  const json::value* value = keyword_of(schema, name);
  return value != nullptr ? value->if_object() : nullptr;
}

const json::array* array_keyword(const json::value* schema, std::string_view name) {
  const json::value* value = keyword_of(schema, name);
  return value != nullptr ? value->if_array() : nullptr;
}

void SchemaSource::note(const Value* child, const Value* parent, std::string path, std::string pointer) {
  places_.try_emplace(child, Place{parent, std::move(path), std::move(pointer)});
}

const json::value* SchemaSource::child(const Value* parent, std::string_view name, const Value& value) {
  note(&value, parent, '.' + std::string(name), '/' + std::string(name));
  return &value;
}

const json::value* SchemaSource::child(const Value* parent, std::string_view name, std::string_view key,
                                       const Value& value) {
  const std::string first(name);
  note(&value, parent, '.' + first + '.' + std::string(key), '/' + first + '/' + pointer_part(key));
  return &value;
}

const json::value* SchemaSource::child(const Value* parent, std::string_view name, std::size_t index,
                                       const Value& value) {
  const std::string first(name);
  const std::string number = std::to_string(index);
  note(&value, parent, '.' + first + '[' + number + ']', '/' + first + '/' + number);
  return &value;
}

const json::value* SchemaSource::target(const Value* schema) {
  const Value* written = keyword_of(schema, "$ref");
  if (written == nullptr) return nullptr;
  const auto* text = written->if_string();
  if (text == nullptr || (*text != "#" && !std::string_view(*text).starts_with("#/"))) {
    refuse(schema, "$ref", "must name a part of the same schema, as #/$defs/…");
    return nullptr;
  }
  std::string_view rest = std::string_view(*text).substr(1);
  const Value* at = &root_;
  std::string path;
  while (!rest.empty() && at != nullptr) {
    const std::string_view part = rest.substr(1, rest.find('/', 1) - 1);
    rest.remove_prefix(part.size() + 1);
    std::string key;
    if (!read_pointer_part(part, key)) {
      at = nullptr;
    } else if (at->is_object()) {
      at = at->get_object().if_contains(key);
      path += '.' + key;
    } else if (at->is_array()) {
      std::size_t index = 0;
      const auto read = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool whole = read.ec == std::errc() && read.ptr == key.data() + key.size();
      at = whole && index < at->get_array().size() ? &at->get_array()[index] : nullptr;
      path += '[' + key + ']';
    } else {
      at = nullptr;
    }
  }
  if (at == nullptr) {
    refuse(schema, "$ref", "names a definition that the schema does not have");
    return nullptr;
  }
  if (at != &root_) note(at, &root_, path, std::string(std::string_view(*text).substr(1)));
  return at;
}

std::vector<const json::value*> SchemaSource::reached_directly(const Value* schema) {
  std::vector<const Value*> out;
  if (!schema->is_object()) return out;
  if (const Value* named = target(schema)) out.push_back(named);
  for (const std::string_view name : {"allOf", "anyOf", "oneOf"}) {
    const json::array* list = array_keyword(schema, name);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) out.push_back(child(schema, name, i, (*list)[i]));
  }
  return out;
}

void SchemaSource::check_cycles(const Value* schema) {
  struct Open {
    const Value* schema;
    std::vector<const Value*> next;
    std::size_t at = 0;
  };
  if (acyclic_.contains(schema)) return;
  std::vector<Open> path;
  path.push_back({schema, reached_directly(schema)});
  acyclic_[schema] = false;
  while (!path.empty() && !failed()) {
    Open& last = path.back();
    if (last.at == last.next.size()) {
      acyclic_[last.schema] = true;
      path.pop_back();
      continue;
    }
    const Value* next = last.next[last.at++];
    const auto known = acyclic_.find(next);
    if (known == acyclic_.end()) {
      acyclic_[next] = false;
      path.push_back({next, reached_directly(next)});
    } else if (!known->second) {
      // The reference is in the last schema of the way that has one.
      const auto with = std::find_if(path.rbegin(), path.rend(),
                                     [](const Open& open) { return keyword_of(open.schema, "$ref") != nullptr; });
      refuse(with != path.rend() ? with->schema : schema, "$ref",
             "leads back to itself with no object or array between");
    }
  }
}

SchemaSource::Place SchemaSource::whole_place(const Value* schema) const {
  std::vector<const Place*> way;
  for (auto at = places_.find(schema); at != places_.end() && way.size() < 256; at = places_.find(at->second.parent)) {
    way.push_back(&at->second);
  }
  Place out{nullptr, path_, "#"};
  for (auto part = way.rbegin(); part != way.rend(); ++part) {
    out.path += (*part)->path;
    out.pointer += (*part)->pointer;
  }
  out.path = shortened(std::move(out.path));
  out.pointer = shortened(std::move(out.pointer));
  return out;
}

Error SchemaSource::error_at(const Value* schema, std::string_view keyword, const std::string& why,
                             Place& place) const {
  place = whole_place(schema);
  const std::string field = place.path + (keyword.empty() ? "" : ".") + std::string(keyword);
  return invalid_field(field, field + ' ' + why + " (" + (keyword.empty() ? "" : std::string(keyword) + " ") + "at " +
                                  place.pointer + ')');
}

void SchemaSource::refuse(const Value* schema, std::string_view keyword, const std::string& why) {
  Place place;
  if (!error_) error_ = error_at(schema, keyword, why, place);
}

void SchemaSource::drop(const Value* schema, std::string_view keyword, const std::string& why) {
  if (!told_.emplace(schema, keyword).second) return;
  Place place;
  Error error = error_at(schema, keyword, why, place);
  dropped_.push_back({std::move(place.pointer), std::string(keyword), std::move(error)});
}

}  // namespace chasqui
