#include "api/core/key_list.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text_file.h"

namespace chasqui {
namespace {

constexpr std::size_t kKeysMax = kSizeLimit<"keys">;  // replacing so many takes the loop half a millisecond
constexpr std::size_t kNameMax = kSizeLimit<"key_name_bytes">;
constexpr std::size_t kFileMax = kSizeLimit<"key_file_bytes">;
constexpr std::size_t kInFlightMax = kSizeLimit<"key_requests">;
constexpr double kWeightMin = 0.01;
constexpr double kWeightMax = 1000;
constexpr std::string_view kHashed = "sha256:";
constexpr std::string_view kBlanks = " \t\r";

std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

template <class Number>
std::optional<Number> number(std::string_view text, Number minimum, Number maximum) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= minimum && value <= maximum)) return std::nullopt;
  return value;
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) { return is_ascii_word_or("-_.@", c); };
  return !text.empty() && text.size() <= kNameMax && std::all_of(text.begin(), text.end(), allowed);
}

std::optional<ServiceClass> class_of(std::string_view text) {
  for (std::size_t i = 0; i < kServiceClasses; ++i) {
    if (text == name(static_cast<ServiceClass>(i))) return static_cast<ServiceClass>(i);
  }
  return std::nullopt;
}

std::optional<net::Sha256> hash_of_hex(std::string_view hex) {
  net::Sha256 hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const char* const first = hex.data() + 2 * i;
    if (std::from_chars(first, first + 2, hash[i], 16).ptr != first + 2) return std::nullopt;
  }
  return hash;
}

std::string hex_of(const net::Sha256& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : hash) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

// What is wrong with a line, without the line itself: it may hold a key.
struct Mistake {
  std::string_view field;
  std::string_view allowed;
};

std::optional<Mistake> read_option(std::string_view word, KeyLine& line) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view field = word.substr(0, equals);
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  if (field == "name") {
    line.tenant = value;
    if (!is_name(value)) return Mistake{"name", "1 to 64 letters, digits and any of - _ . @"};
  } else if (field == "class") {
    line.service_class = class_of(value);
    if (!line.service_class) return Mistake{"class", "interactive, standard or background"};
  } else if (field == "weight") {
    line.weight = number(value, kWeightMin, kWeightMax);
    if (!line.weight) return Mistake{"weight", "a number between 0.01 and 1000"};
  } else if (field == "in_flight") {
    line.in_flight = number<std::size_t>(value, 1, kInFlightMax);
    if (!line.in_flight) return Mistake{"in_flight", "a whole number between 1 and 100000"};
  } else if (field == "admin") {
    line.admin = value == "yes";
    if (!line.admin && value != "no") return Mistake{"admin", "yes or no"};
  } else {
    return Mistake{"what follows the key", "name=, class=, weight=, in_flight= or admin="};
  }
  return std::nullopt;
}

// Takes the next line; empty where it says nothing.
std::string_view take_line(std::string_view& rest) {
  const std::string_view text = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(text.size() + 1, rest.size()));
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos || text[first] == '#' ? std::string_view() : text;
}

std::optional<Mistake> read_line(std::string_view text, KeyLine& line) {
  const std::string_view key = take_word(text);
  if (key.starts_with(kHashed)) {
    const auto hash = hash_of_hex(key.substr(kHashed.size()));
    if (!hash) return Mistake{"sha256", "followed by 64 hexadecimal digits"};
    // `printf %s "$UNSET" | sha256sum`: a request without a key would have it.
    if (*hash == net::sha256({""})) return Mistake{"sha256", "of a key, not of an empty text"};
    line.hash = *hash;
  } else {
    line.hash = net::sha256({key});
  }
  std::set<std::string_view> said;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    const std::string_view field = word.substr(0, word.find('='));
    if (auto mistake = read_option(word, line)) return mistake;
    if (!said.insert(field).second) return Mistake{field, "on a line once only"};
  }
  if (line.tenant.empty()) line.tenant = hex_of(line.hash);
  return std::nullopt;
}

// Joins what the lines of a tenant say about it.
template <class Value>
bool agree(std::optional<Value>& known, std::optional<Value>& said) {
  if (known && said && *known != *said) return false;
  if (said) known = said;
  return true;
}

class KeyReader {
 public:
  explicit KeyReader(const std::string& file_name) : file_name_(file_name) {}

  Result<void> add(std::string_view text, std::size_t line_number) {
    KeyLine line;
    if (const auto mistake = read_line(text, line)) return fault(line_number, mistake->field, mistake->allowed);
    const auto [seen, fresh] = seen_.emplace(line.hash, lines_.size());
    if (!fresh) {
      const KeyLine& before = lines_[seen->second];
      // The same key twice is no harm, as long as it means the same.
      const bool same = before.service_class == line.service_class && before.admin == line.admin;
      if (before.tenant == line.tenant && same) return {};
      return fault(line_number, "the key", "on one line only, or mean the same on both");
    }
    Tenant& tenant = tenants_[line.tenant];
    if (!agree(tenant.weight, line.weight)) return fault(line_number, "weight", "the same on all lines of one name");
    if (!agree(tenant.in_flight, line.in_flight)) {
      return fault(line_number, "in_flight", "the same on all lines of one name");
    }
    if (lines_.size() == kKeysMax) return fault(line_number, "the number of keys", "at most 2048");
    lines_.push_back(std::move(line));
    return {};
  }

  std::vector<KeyLine> take() {
    for (KeyLine& line : lines_) {
      line.weight = tenants_[line.tenant].weight;
      line.in_flight = tenants_[line.tenant].in_flight;
    }
    return std::move(lines_);
  }

 private:
  struct Tenant {
    std::optional<double> weight;
    std::optional<std::size_t> in_flight;
  };

  Error fault(std::size_t line_number, std::string_view field, std::string_view allowed) const {
    const std::string where = line_number == 0 ? "--api-key" : file_name_ + ": line " + std::to_string(line_number);
    return invalid_field(std::string(field), where + ": " + std::string(field) + " must be " + std::string(allowed));
  }

  const std::string& file_name_;
  std::vector<KeyLine> lines_;
  std::map<net::Sha256, std::size_t> seen_;
  std::map<std::string, Tenant, std::less<>> tenants_;
};

}  // namespace

Result<std::vector<KeyLine>> parse_keys(const std::vector<std::string>& plain, const std::string& file_name,
                                        std::string_view file_text) {
  KeyReader reader(file_name);
  for (const std::string& key : plain) {
    // `--api-key "$UNSET"` must not open the door to everybody.
    if (key.find_first_not_of(kBlanks) == std::string::npos) {
      return invalid_field("--api-key", "--api-key: a key must not be empty");
    }
    if (auto added = reader.add(key, 0); !added) return added.error();
  }
  std::size_t line_number = 0;
  while (!file_text.empty()) {
    const std::string_view text = take_line(file_text);
    ++line_number;
    if (text.empty()) continue;
    if (auto added = reader.add(text, line_number); !added) return added.error();
  }
  std::vector<KeyLine> keys = reader.take();
  // Nor must a file without keys.
  if (keys.empty() && !file_name.empty()) {
    return invalid_field("--api-key-file", "--api-key-file: there are no keys in " + file_name);
  }
  return keys;
}

bool has_plain_key(std::string_view file_text) {
  while (!file_text.empty()) {
    std::string_view text = take_line(file_text);
    if (!text.empty() && !take_word(text).starts_with(kHashed)) return true;
  }
  return false;
}

Result<std::vector<KeyLine>> read_keys(const std::vector<std::string>& plain, const std::string& file_name) {
  std::string text;
  if (!file_name.empty()) {
    auto read = read_text_file(file_name, kFileMax);
    if (!read) return invalid_field("--api-key-file", "--api-key-file: cannot read " + file_name);
    text = std::move(*read);
    if (text.size() > kFileMax) {
      return invalid_field("--api-key-file", "--api-key-file: " + file_name + " must have at most 4 MiB");
    }
  }
  return parse_keys(plain, file_name, text);
}

}  // namespace chasqui
